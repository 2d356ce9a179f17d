"""Results for people: figures, tables, the notebook runner, the book."""
