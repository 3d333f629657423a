"""A visitor's conversations and feedback over HTTP."""
