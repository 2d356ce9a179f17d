"""From a configuration to a model: which blocks it is the sum of, and the values of their symbols."""
