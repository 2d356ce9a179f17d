"""The theory in SymPy: symbols and equations. No numbers of any model, no files."""
