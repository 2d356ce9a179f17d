"""Measured runs beside predictions: constants fitted to them, what is left over, and how wide an interval must be."""
