"""The benchmark: networks by script, measured into one table."""
