"""A visitor's conversations over HTTP, and what they say of answers."""
