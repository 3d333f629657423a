"""The gateway: HTTP in, answers and receipts out. What it needs is stated in ports.py, and wiring/ brings it."""
