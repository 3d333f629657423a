"""Benchmarks: ratios measured side by side in one run. `python -m bench NAME` prints a table and keeps the JSON."""
