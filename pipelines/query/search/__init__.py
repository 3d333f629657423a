"""The search: what is near a question, and the passages around it."""
