"""Which cluster for which workload: the plans side by side, and what follows from them."""
