"""Backup and restore of the data that cannot be derived, as a folder of plain files.

    cms.changes, up to now ─▶ newest of each page ─▶ changes.ndjson.gz ───────┐
    pagewire.conversations ────────────────────────▶ conversations.ndjson.gz  │
    pagewire.outcomes ─────────────────────────────▶ questions.ndjson.gz      ├─ + manifest.json = a backup
    pagewire.examples ─────────────────────────────▶ examples.ndjson.gz ──────┘

    a backup ─▶ checksums ─┬─ examples, questions, conversations ─▶ Elasticsearch, unless it has newer ones
                           └─ changes ─▶ cms.changes, bulk lane, unless the log has newer ones
                                          └─▶ chunk ─▶ embed ─▶ index ─▶ receipts, as for any change

Not in the backup: chunks, vectors, indexes and receipts, which follow from the changes; unanswered questions; dead
letters; the secrets and settings of the installation (docs/howto/deploy.md).

A backup runs while saves and questions go on. It has the pages as of its begin, and each other document as of the
moment when it was read. A restore uses the normal ways into the system, so it may be repeated after a crash, and may
run in a working system: newer data wins. Memory holds one batch at a time.
"""
