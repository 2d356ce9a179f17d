"""k3lib: how should an organisation serve Kimi K3 itself? Facts, equations and numbers with a trail."""
