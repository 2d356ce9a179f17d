"""What a user's own files say: benchmark results, engine logs and measured exchanges, recognised by their content."""
