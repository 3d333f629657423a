"""A storm over the whole ingest system: seeded saves and faults, and a checker that reads everything back.

    traffic ─HTTP─▶ gateways ─▶ Kafka ─▶ workers ─▶ proxy ─▶ Elasticsearch        faults strike all of it
       └─────────▶ history: what was sent and what was answered ──▶ checker ◀── everything, read back

`python -m tests.faults.storm --minutes 30 --seed 7`; the short form is tests/faults/test_storm.py.
"""
