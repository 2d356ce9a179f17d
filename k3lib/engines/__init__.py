"""What vLLM and SGLang really do with memory. Numbers are rows of data/engines.csv; what cannot be a number is here."""
