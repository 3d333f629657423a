"""Answers without a model: what was found is weighed, and what is shown is quoted."""
