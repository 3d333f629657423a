"""The stream worker: runs stages on Kafka: fetch, order, retry, commit, dead letter."""
