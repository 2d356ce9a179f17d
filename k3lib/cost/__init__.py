"""What owning a cluster, renting one and calling a service cost: bills line by line, a million tokens, ranges."""
