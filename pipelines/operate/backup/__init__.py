"""Backup and restore: what cannot be made again, in a folder of plain files, and back into the system.

    cms.changes, up to now ─▶ newest of each page ─▶ changes.ndjson.gz ───────┐
    pagewire.conversations ────────────────────────▶ conversations.ndjson.gz  │
    pagewire.outcomes ─────────────────────────────▶ questions.ndjson.gz      ├─ + manifest.json = a backup
    pagewire.examples ─────────────────────────────▶ examples.ndjson.gz ──────┘

    a backup ─▶ checksums ─┬─ examples, questions, conversations ─▶ Elasticsearch, where nothing newer is there
                           └─ changes ─▶ cms.changes, bulk lane, where the log knows nothing newer
                                          └─▶ chunk ─▶ embed ─▶ index ─▶ receipts, as ever

Chunks, vectors, indexes and receipts follow from the changes and are not kept. Neither are questions under way, dead
letters, and the secrets and settings of the installation (docs/howto/deploy.md).

A backup runs while saves and questions go on. Of the pages it is the state at its begin; of the rest the state when it
was read, each document by itself. A restore writes through the same doors as everybody, so it may be repeated, may be
cut and run again, and may go into a system that is at work: what is there and newer wins. Nothing is held in memory
but a batch.
"""
