"""The audit: what index and change log do not agree on, and its repair."""
