"""The tables of one audit and their queries, for `index_diff`.

Revisions are compared as (revision, deleted) pairs: the higher revision wins, at the same one a delete stays a delete
(pipelines.ingest.accept.newer). `open` pages had a difference at the last look.
"""

from __future__ import annotations

SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE log (
    page_key TEXT PRIMARY KEY, revision INTEGER, deleted INTEGER, partition INTEGER, offset INTEGER,
    due_revision INTEGER, due_deleted INTEGER  -- the winner when the audit began: the index must show it or a newer one
) WITHOUT ROWID;
-- The best change of each partition that has any of the page (several, where partitions were added), and the last one.
CREATE TABLE place (
    page_key TEXT, partition INTEGER, revision INTEGER, deleted INTEGER, offset INTEGER, top INTEGER,
    PRIMARY KEY (page_key, partition)
) WITHOUT ROWID;
CREATE TABLE head (page_key TEXT PRIMARY KEY, revision INTEGER, deleted INTEGER, misfit INTEGER, version INTEGER)
    WITHOUT ROWID;
CREATE TABLE promised (page_key TEXT, field TEXT, chunks INTEGER, PRIMARY KEY (page_key, field)) WITHOUT ROWID;
CREATE TABLE chunk (
    page_key TEXT, field TEXT, ord INTEGER, id TEXT,  -- id: '' unless it is not the one it should have
    revision INTEGER, misfit INTEGER, version INTEGER, PRIMARY KEY (page_key, field, ord, id)
) WITHOUT ROWID;
CREATE TABLE page (page_key TEXT PRIMARY KEY, open INTEGER) WITHOUT ROWID;
CREATE TABLE cause (cause TEXT PRIMARY KEY, kind TEXT, behind INTEGER, resend INTEGER, doubtful INTEGER) WITHOUT ROWID;
CREATE TABLE finding (
    page_key TEXT, cause TEXT, expected INTEGER, held INTEGER, amount INTEGER DEFAULT 0, example TEXT DEFAULT '',
    failed INTEGER DEFAULT 0, PRIMARY KEY (page_key, cause)
) WITHOUT ROWID;
CREATE VIEW drift AS SELECT * FROM finding JOIN cause USING (cause) WHERE NOT failed;
CREATE VIEW judged_chunk AS
SELECT c.*, l.revision AS expected, CASE
    WHEN l.page_key IS NULL THEN NULL  -- the page as a whole is `unlogged`
    WHEN c.revision > l.revision THEN 'newer-chunks'
    WHEN h.page_key IS NULL OR h.deleted OR c.id <> '' OR c.ord >= coalesce(p.chunks, 0) THEN 'orphan'
    WHEN c.revision <> h.revision THEN 'mixed'
    WHEN c.misfit & 1 THEN 'model'
    WHEN c.misfit & 2 THEN 'chunker'
END AS cause
FROM chunk c LEFT JOIN log l USING (page_key) LEFT JOIN head h USING (page_key)
LEFT JOIN promised p USING (page_key, field);
"""

# Filling

ADD_CAUSE = "INSERT INTO cause VALUES (?, ?, ?, ?, ?)"
ADD_CHANGE = """
INSERT INTO log (page_key, revision, deleted, partition, offset) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET revision = excluded.revision, deleted = excluded.deleted,
    partition = excluded.partition, offset = excluded.offset
WHERE (excluded.revision, excluded.deleted) >= (log.revision, log.deleted)  -- of equal ones the last was applied last
"""
ADD_PLACE = """
INSERT INTO place (page_key, revision, deleted, partition, offset, top) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET revision = excluded.revision, deleted = excluded.deleted,
    offset = excluded.offset, top = excluded.top
WHERE (excluded.revision, excluded.deleted) >= (place.revision, place.deleted)
"""
RAISE_TOP = "UPDATE place SET top = ? WHERE page_key = ? AND partition = ? AND top < ?"
LOG_IS_READ = "UPDATE log SET due_revision = revision, due_deleted = deleted"
ADD_HEAD = "INSERT OR REPLACE INTO head VALUES (?, ?, ?, ?, ?)"
ADD_PROMISED = "INSERT OR REPLACE INTO promised VALUES (?, ?, ?)"
ADD_CHUNK = "INSERT OR REPLACE INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?)"
FORGET = tuple(f"DELETE FROM {table} WHERE page_key = ?" for table in ("head", "promised", "chunk"))  # noqa: S608
OPEN_ALL = """
INSERT INTO page SELECT page_key, 1 FROM log
UNION SELECT page_key, 1 FROM head UNION SELECT page_key, 1 FROM chunk
"""

# Judging the open pages

FORGET_FINDINGS = "DELETE FROM finding WHERE page_key IN (SELECT page_key FROM page WHERE open)"
JUDGE_PAGES = """
INSERT INTO finding (page_key, cause, expected, held)
SELECT page_key, cause, expected, held FROM (
    SELECT page_key, l.revision AS expected, h.revision AS held, CASE
        WHEN l.page_key IS NULL THEN 'unlogged'
        WHEN h.page_key IS NULL AND l.due_deleted THEN 'unguarded'
        WHEN h.page_key IS NULL AND l.due_revision IS NOT NULL THEN 'absent'
        WHEN (h.revision, h.deleted) > (l.revision, l.deleted) THEN iif(h.deleted, 'undone', 'newer')
        WHEN (h.revision, h.deleted) >= (l.due_revision, l.due_deleted) THEN NULL
        WHEN l.due_deleted AND NOT h.deleted THEN 'undeleted'
        WHEN h.deleted AND NOT l.due_deleted THEN 'hidden'
        WHEN l.due_revision IS NOT NULL THEN 'older'
    END AS cause
    FROM page LEFT JOIN log l USING (page_key) LEFT JOIN head h USING (page_key) WHERE open
) WHERE cause IS NOT NULL
"""
# Compaction keeps the last record of each partition: one place where that is the winner is enough.
JUDGE_LOG = """
INSERT INTO finding (page_key, cause, expected)
SELECT page_key, 'buried', l.revision FROM page JOIN log l USING (page_key) WHERE open AND NOT EXISTS (
    SELECT 1 FROM place p WHERE p.page_key = l.page_key
    AND (p.revision, p.deleted) = (l.revision, l.deleted) AND p.top = p.offset
)
"""
JUDGE_CHUNKS = """
INSERT INTO finding (page_key, cause, expected, held, amount, example)
SELECT page_key, cause, expected, max(c.revision), count(*), min(iif(c.id = '', c.field || '#' || c.ord, c.id))
FROM page JOIN judged_chunk c USING (page_key) WHERE open AND cause IS NOT NULL GROUP BY page_key, cause
"""
JUDGE_HEADS = """
INSERT OR IGNORE INTO finding (page_key, cause, expected, held)
SELECT page_key, iif(h.misfit & 1, 'model', 'chunker'), l.revision, h.revision
FROM page JOIN head h USING (page_key) JOIN log l USING (page_key) WHERE open AND NOT h.deleted AND h.misfit
"""
JUDGE_PROMISES = """
WITH kept AS MATERIALIZED (
    SELECT p.page_key, p.field, p.chunks - (
        SELECT count(*) FROM chunk c
        WHERE c.page_key = p.page_key AND c.field = p.field AND c.ord < p.chunks AND c.id = ''
    ) AS lacking
    FROM page CROSS JOIN promised p USING (page_key) WHERE open  -- CROSS: few pages are open, the others are not read
)
INSERT INTO finding (page_key, cause, expected, held, amount, example)
SELECT page_key, 'short', l.revision, h.revision, sum(lacking), min(field)
FROM kept JOIN log l USING (page_key) JOIN head h USING (page_key)
WHERE lacking > 0 AND NOT h.deleted GROUP BY page_key
"""
JUDGE = (FORGET_FINDINGS, JUDGE_PAGES, JUDGE_LOG, JUDGE_CHUNKS, JUDGE_HEADS, JUDGE_PROMISES)
BEHIND = """
SELECT f.page_key, l.due_revision FROM finding f JOIN cause USING (cause) JOIN log l USING (page_key)
WHERE behind AND NOT failed AND f.page_key > ? ORDER BY f.page_key LIMIT ?
"""
MARK_FAILED = """
UPDATE finding SET failed = 1 WHERE page_key = ? AND cause IN (SELECT cause FROM cause WHERE behind)
"""
CLOSE_AGREEING = "UPDATE page SET open = 0 WHERE open AND page_key NOT IN (SELECT page_key FROM drift)"
OPEN_PAGES = "SELECT page_key FROM page WHERE open AND page_key > ? ORDER BY page_key LIMIT ?"

# Telling

COUNT_OPEN = "SELECT count(*) FROM page WHERE open"
COUNT_CURABLE = "SELECT count(DISTINCT page_key) FROM drift WHERE resend"
COUNT_PAGES = """
SELECT count(*), total(coalesce(l.deleted, h.deleted, 0))
FROM page LEFT JOIN log l USING (page_key) LEFT JOIN head h USING (page_key)
"""
COUNT_CHUNKS = "SELECT count(*) FROM chunk"
COUNT_FAILED = "SELECT count(DISTINCT page_key) FROM finding WHERE failed"
KINDS = "SELECT kind, count(DISTINCT page_key) FROM drift GROUP BY kind ORDER BY kind"
FINDINGS = """
SELECT page_key, kind, cause, expected, held, amount, example FROM drift ORDER BY page_key, cause LIMIT ?
"""

# Repairing

WOULD_VANISH = """
SELECT count(DISTINCT d.page_key) FROM drift d LEFT JOIN head h USING (page_key)
WHERE cause IN ('undeleted', 'unlogged') AND NOT coalesce(h.deleted, 0)
"""
SHOWN = "SELECT count(*) FROM head WHERE NOT deleted"
TO_SEND = """
SELECT page_key, l.partition, l.offset, l.revision,
    max(iif(doubtful OR (cause = 'undone' AND ?), held, NULL)) AS beaten,
    max(iif(cause = 'undone' AND NOT ?, held, NULL))
FROM drift JOIN log l USING (page_key)
WHERE (resend OR doubtful) AND (l.partition, l.offset) > (?, ?)
GROUP BY page_key HAVING beaten IS NULL OR ? ORDER BY l.partition, l.offset LIMIT ?
"""
TO_CLEAR = """
SELECT DISTINCT d.page_key FROM drift d LEFT JOIN log l USING (page_key)
WHERE d.page_key > ? AND (cause = 'orphan' OR (cause = 'unlogged' AND ?)) AND NOT EXISTS (
    SELECT 1 FROM drift o WHERE o.page_key = d.page_key AND (o.resend OR (o.doubtful AND l.page_key IS NOT NULL))
) ORDER BY d.page_key LIMIT ?
"""
STRAYS = """
SELECT c.id, field, ord, c.version FROM judged_chunk c LEFT JOIN log l USING (page_key)
WHERE page_key = ? AND (cause = 'orphan' OR l.page_key IS NULL)
"""
UNLOGGED_HEAD = """
SELECT h.version FROM head h LEFT JOIN log l USING (page_key) WHERE page_key = ? AND l.page_key IS NULL
"""
