"""Judged measures: what a model says of answers, what it did not say, and how far it may be trusted."""
