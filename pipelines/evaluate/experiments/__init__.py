"""Experiments: a dataset asked under each of many settings, and which of them are shown to be better."""
