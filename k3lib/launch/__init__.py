"""Commands that start a plan, engine by engine, with the reason for each flag."""
