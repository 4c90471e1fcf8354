-- Keyed calls: what was written down before each ran, and what it came to. What the texts say is no business of the store.
CREATE TABLE calls (
    id         TEXT    NOT NULL PRIMARY KEY,
    head       TEXT    NOT NULL,
    ending     TEXT,             -- NULL: it has not ended, or its hub was stopped before it had
    expires_at INTEGER NOT NULL
) STRICT;

CREATE INDEX calls_by_expiry ON calls (expires_at);
