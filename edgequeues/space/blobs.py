"""Table `blobs`: what is known of the blobs of a space. Their bytes lie elsewhere, see `edgequeues.blobs.store`.

A row is written when its bytes are on disk, and removed when they are gone: one that is doomed is waiting for that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw

from edgequeues.blobs.about import Blob

DDL = """
CREATE TABLE blobs (
  bucket       TEXT    NOT NULL,
  key          TEXT    NOT NULL,
  event_id     TEXT    NOT NULL,
  source       TEXT    NOT NULL,
  content_type TEXT    NOT NULL,
  filename     TEXT,
  media_width  INTEGER,           -- pixels
  media_height INTEGER,
  size         INTEGER NOT NULL,  -- bytes
  sha256       TEXT    NOT NULL,  -- hexadecimal
  created_ts   INTEGER NOT NULL,  -- unix ms
  kept_until   INTEGER NOT NULL,  -- unix ms; no link that was ever given ends later
  doomed       INTEGER NOT NULL DEFAULT 0 CHECK (doomed IN (0, 1)),  -- is it on its way out?
  PRIMARY KEY (bucket, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX blobs_event  ON blobs (event_id, bucket, key);
CREATE INDEX blobs_kept   ON blobs (kept_until) WHERE doomed = 0;
CREATE INDEX blobs_doomed ON blobs (bucket, key) WHERE doomed = 1;
"""
_COLUMNS = (
    "event_id, source, content_type, filename, media_width, media_height, bucket, key, size, sha256, created_ts,"
    " kept_until"
)
GET = f"SELECT {_COLUMNS}, doomed OR kept_until <= ? FROM blobs WHERE bucket = ? AND key = ?"
OF_EVENT = (
    f"SELECT {_COLUMNS} FROM blobs WHERE event_id = ? AND (bucket, key) > (?, ?) AND doomed = 0 AND kept_until > ?"
    " ORDER BY bucket, key LIMIT ?"
)
PUT = f"INSERT INTO blobs ({_COLUMNS}) VALUES ({', '.join('?' * 12)})"
KEEP = "UPDATE blobs SET kept_until = max(kept_until, ?) WHERE bucket = ? AND key = ?"
DOOM = "UPDATE blobs SET doomed = 1 WHERE bucket = ? AND key = ?"
DOOM_EVENT = (
    "UPDATE blobs SET doomed = 1 WHERE (bucket, key) IN"
    " (SELECT bucket, key FROM blobs WHERE event_id = ? AND doomed = 0 LIMIT ?)"
)
DOOM_DUE = (
    "UPDATE blobs SET doomed = 1 WHERE (bucket, key) IN"
    " (SELECT bucket, key FROM blobs WHERE doomed = 0 AND kept_until <= ? ORDER BY kept_until LIMIT ?)"
)
DOOMED = "SELECT bucket, key FROM blobs INDEXED BY blobs_doomed WHERE doomed = 1 ORDER BY bucket, key LIMIT ?"
DOOMED_OF = "SELECT bucket, key FROM blobs WHERE event_id = ? AND doomed = 1 LIMIT ?"
SOONEST = "SELECT kept_until FROM blobs WHERE doomed = 0 AND kept_until > -1 ORDER BY kept_until LIMIT 1"
REMOVE = "DELETE FROM blobs WHERE bucket = ? AND key = ? AND doomed = 1"


class Found(NamedTuple):
    """A row. gone: it is not there for anybody any more, though perhaps its bytes are."""

    blob: Blob
    gone: bool


def get(db: apsw.Connection, bucket: str, key: str, at: int) -> Found | None:
    """The row of a blob, as it is at unix ms `at`."""
    row: Any = db.execute(GET, (at, bucket, key)).fetchone()
    return None if row is None else Found(_blob(row), bool(row[-1]))


def of_event(db: apsw.Connection, event_id: str, after: tuple[str, str], limit: int, at: int) -> list[Blob]:
    """Up to `limit` blobs of an event that are there at unix ms `at`, by bucket and key from above `after`."""
    return [_blob(row) for row in db.execute(OF_EVENT, (event_id, *after, at, limit))]


def put(db: apsw.Connection, blob: Blob) -> None:
    """Write a row that is not there yet."""
    about = (
        blob.event_id,
        blob.source,
        blob.content_type,
        blob.filename,
        blob.media_width,
        blob.media_height,
    )
    facts = (blob.bucket, blob.key, blob.size, blob.sha256, blob.created, blob.kept_until)
    db.execute(PUT, (*about, *facts))


def keep(db: apsw.Connection, bucket: str, key: str, until: int) -> None:
    """Keep a blob until unix ms `until` at least."""
    db.execute(KEEP, (until, bucket, key))


def doom(db: apsw.Connection, bucket: str, key: str) -> None:
    """Have a blob be gone."""
    db.execute(DOOM, (bucket, key))


def doom_event(db: apsw.Connection, event_id: str, limit: int) -> int:
    """Have up to `limit` blobs of an event be gone; return how many there were."""
    db.execute(DOOM_EVENT, (event_id, limit))
    return db.changes()


def doom_due(db: apsw.Connection, at: int, limit: int) -> None:
    """Have up to `limit` blobs be gone whose time is over at unix ms `at`."""
    db.execute(DOOM_DUE, (at, limit))


def doomed(db: apsw.Connection, limit: int, event_id: str | None = None) -> list[tuple[str, str]]:
    """Bucket and key of up to `limit` blobs whose bytes are to be deleted, perhaps only those of an event."""
    rows = db.execute(DOOMED, (limit,)) if event_id is None else db.execute(DOOMED_OF, (event_id, limit))
    return [(bucket, key) for bucket, key in rows]


def soonest(db: apsw.Connection) -> int | None:
    """Unix ms at which the time of the next blob is over."""
    kept_until: int | None = db.execute(SOONEST).get
    return kept_until


def remove(db: apsw.Connection, bucket: str, key: str) -> None:
    """Forget a blob that is doomed and whose bytes are gone."""
    db.execute(REMOVE, (bucket, key))


def _blob(row: Any) -> Blob:
    event_id, source, content_type, filename, width, height, bucket, key, size, digest, created, kept = row[
        :12
    ]
    return Blob(
        event_id,
        source,
        content_type,
        filename,
        width,
        height,
        bucket=bucket,
        key=key,
        size=size,
        sha256=digest,
        created=created,
        kept_until=kept,
    )
