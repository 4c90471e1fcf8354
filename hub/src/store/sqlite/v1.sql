-- Times are milliseconds since 1970. Text compares by its bytes.

CREATE TABLE scopes (
    id       INTEGER PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    project  TEXT    NOT NULL,
    revision INTEGER NOT NULL, -- counts the writes of the scope
    UNIQUE (tenant, project)
) STRICT;

-- What a listing needs, apart from the texts, so that listing reads few pages. A deleted document keeps its row, since
-- its versions go on counting when it is made anew.
CREATE TABLE documents (
    scope      INTEGER NOT NULL REFERENCES scopes (id),
    path       TEXT    NOT NULL,
    version    INTEGER NOT NULL, -- the last one written
    deleted    INTEGER NOT NULL, -- 0 or 1
    bytes      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT    NOT NULL, -- who wrote or deleted it last
    PRIMARY KEY (scope, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE versions (
    scope      INTEGER NOT NULL,
    path       TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    text       TEXT    NOT NULL,
    created_at INTEGER NOT NULL, -- of the document
    updated_at INTEGER NOT NULL, -- of this version
    created_by TEXT    NOT NULL, -- who wrote this version
    PRIMARY KEY (scope, path, version),
    FOREIGN KEY (scope, path) REFERENCES documents (scope, path)
) STRICT;

CREATE TABLE records (
    kind    TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    version INTEGER NOT NULL, -- the last one written
    value   TEXT,             -- NULL: deleted; its versions go on counting
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
