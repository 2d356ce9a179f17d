"""The only code that reads `data/`: files become validated, frozen records."""
