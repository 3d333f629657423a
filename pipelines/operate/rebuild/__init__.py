"""The rebuild: makes a new index of a site next to the live one, verifies it, and promotes it."""
