"""Benchmarks: ratios measured side by side in one run. `pagewire bench NAME` prints a table and keeps the JSON."""
