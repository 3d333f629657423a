"""The audit: finds differences between an index and the change log, and repairs them."""
