"""A concrete deployment: cluster, layout, engine, settings, workload, and what they come to."""
