"""Hazards of the stream worker, on a Kafka of their own that may be killed: nothing accepted is ever lost."""
