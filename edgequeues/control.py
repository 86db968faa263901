"""The file `control.db` of a data folder: who may do what, and which specs hold in which space.

The command line writes tokens while the server reads them; specs are the server's alone.

A token is `eq_<id>_<secret>`. Its secret is 256 random bits, so that a plain hash is as good as a slow one; nothing
else of it is stored. Rows are never deleted: a server that wanted tokens must not open up when the last is revoked.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import apsw
import msgspec
from msgspec import Struct

from edgequeues.core.grants import Grant, Verb

FILE_NAME = "control.db"
TOKENS_MAX = 10_000
NAME_LENGTH_MAX = 64
EXPIRES_MAX = 253_402_300_799_999  # unix ms: the last year that has four digits
BUSY_MS = 2_000  # another writer is given so long; none of ours takes more than a moment
ID_LENGTH = 12
_ID_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_SCHEMA = 2
_NO_HASH = bytes(32)  # compared with where there is no such token, so that both take the same time

DDL = """
CREATE TABLE tokens (
  id         TEXT    NOT NULL PRIMARY KEY,
  name       TEXT    NOT NULL,
  hash       BLOB,               -- SHA-256 of the secret; NULL: what everybody may do without a token
  verbs      TEXT    NOT NULL,   -- JSON arrays
  spaces     TEXT    NOT NULL,
  queues     TEXT    NOT NULL,
  created_ts INTEGER NOT NULL,   -- unix ms
  expires_ts INTEGER,
  revoked_ts INTEGER
) STRICT, WITHOUT ROWID;
"""
STEP_2 = """
CREATE TABLE specs (
  space      TEXT    NOT NULL,
  app        TEXT    NOT NULL,
  origin     TEXT    NOT NULL,  -- where it came from, in words
  ir         TEXT    NOT NULL,  -- JSON
  applied_ts INTEGER NOT NULL,  -- unix ms
  PRIMARY KEY (space, app)
) STRICT, WITHOUT ROWID;
"""
COLUMNS = "id, name, hash, verbs, spaces, queues, created_ts, expires_ts, revoked_ts"
ALL = f"SELECT {COLUMNS} FROM tokens ORDER BY created_ts, id"
NAMED = f"SELECT {COLUMNS} FROM tokens WHERE id = ? OR name = ? ORDER BY created_ts, id"
INSERT = f"INSERT INTO tokens ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)"
SPECS = "SELECT space, app, origin, ir, applied_ts FROM specs ORDER BY space, app"
PUT_SPEC = "INSERT OR REPLACE INTO specs (space, app, origin, ir, applied_ts) VALUES (?, ?, ?, ?, ?)"
REMOVE_SPEC = "DELETE FROM specs WHERE space = ? AND app = ?"
REVOKE = "UPDATE tokens SET revoked_ts = ? WHERE id = ? AND revoked_ts IS NULL"


class ControlError(Exception):
    """The control file, or what was asked of it, will not do. The message says what, where, and what to do."""


class Token(Struct, frozen=True):
    """A row. Times are unix ms. secret_hash: None for what everybody may do without a token."""

    id: str
    name: str
    secret_hash: bytes | None
    grant: Grant
    created: int
    expires: int | None
    revoked: int | None

    @property
    def anonymous(self) -> bool:
        """Does this grant need no token?"""
        return self.secret_hash is None

    def holds(self, now_ms: int) -> bool:
        """Is it neither revoked nor expired?"""
        return self.revoked is None and (self.expires is None or now_ms < self.expires)


class SpecRow(NamedTuple):
    """A spec that holds in a space. ir: its JSON. applied: unix ms."""

    space: str
    app: str
    origin: str
    ir: str
    applied: int


class Access:
    """What the file said when it was last read. Asking it touches no disk."""

    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        rows = list(tokens)
        self.exists = bool(rows)  # has there ever been a token?
        self._by_id = {one.id: one for one in rows if not one.anonymous}
        self._anonymous = [one for one in rows if one.anonymous]

    def find(self, text: str, now_ms: int) -> Token | None:
        """The token of this text; None: it is none, or none any more."""
        _, _, rest = text.partition("_")
        token_id, _, secret = rest.partition("_")
        token = self._by_id.get(token_id)
        stored = _NO_HASH if token is None or token.secret_hash is None else token.secret_hash
        same = hmac.compare_digest(stored, _hash(secret))
        if token is None or not same or not token.holds(now_ms) or not text.startswith("eq_"):
            return None
        return token

    def holding(self, token_id: str, now_ms: int) -> Token | None:
        """The token of this id; None: there is none, or none any more."""
        token = self._by_id.get(token_id)
        return token if token is not None and token.holds(now_ms) else None

    def anonymous(self, now_ms: int) -> tuple[Grant, ...]:
        """What everybody may do without a token."""
        return tuple(one.grant for one in self._anonymous if one.holds(now_ms))


class Control:
    """The file, open. One for the server, one for each command; each in one thread at a time."""

    def __init__(self, path: Path, db: apsw.Connection) -> None:
        self._path = path
        self._db = db
        self._seen = 0

    @classmethod
    def open(cls, folder: Path, *, create: bool = True, vfs: str = "") -> Control:
        """Open the file of a data folder, made where it is missing. Raises ControlError.

        create: False raises it where the file is missing, and makes nothing. vfs: SQLite's; "" is its own.
        """
        path = folder / FILE_NAME
        try:
            if not create and not path.exists():
                raise ControlError(
                    f"{path} is not there: name the data folder of a server, or make a token first"
                )
            folder.mkdir(parents=True, exist_ok=True)
            # Not readable by others from the first moment. Only a new file is opened so: closing a file gives up
            # the locks that SQLite holds on it in this process.
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            db = apsw.Connection(str(path), vfs=vfs or None)
        except (OSError, apsw.Error) as error:
            raise _unusable(path, error) from error
        try:
            db.set_busy_timeout(BUSY_MS)
            db.transaction_mode = "IMMEDIATE"  # of two that read first and write then, one would fail at once
            db.pragma("journal_mode", "delete")  # one small file, nothing beside it
            # FULL does not sync the folder after the journal is deleted: a power cut could bring the journal back,
            # and with it a token that was revoked.
            db.pragma("synchronous", "extra")
            if db.pragma("user_version") != _SCHEMA:  # or else nobody who only reads has to wait
                with db:
                    _migrate(path, db)
        except apsw.Error as error:
            db.close()
            raise _unusable(path, error) from error
        except ControlError:
            db.close()
            raise
        return cls(path, db)

    def __enter__(self) -> Control:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def never_wait(self) -> None:
        """From now on, read nothing rather than wait for a writer: `changed` then says so later."""
        self._db.set_busy_timeout(0)

    def changed(self) -> bool:
        """Has another connection written since `access` was called last? Raises ControlError."""
        return self._version() != self._seen

    def access(self) -> Access:
        """Read what everybody may do. Raises ControlError."""
        version = self._version()
        access = Access(self.tokens())
        self._seen = version
        return access

    def tokens(self) -> list[Token]:
        """All tokens there ever were, oldest first. Raises ControlError."""
        return self._read(ALL)

    def create(
        self, name: str, grant: Grant, *, now_ms: int, expires: int | None = None, anonymous: bool = False
    ) -> tuple[Token, str | None]:
        """Make a token; return its row and its text, which cannot be had again. Durable once returned.

        anonymous: a grant to everybody, which has no text. expires: unix ms. Raises ControlError.
        """
        if not 1 <= len(name) <= NAME_LENGTH_MAX or not name.isprintable():
            raise ControlError(
                f"{name!r} is no name for a token: 1 to {NAME_LENGTH_MAX} printable characters"
            )
        if expires is not None and expires > EXPIRES_MAX:
            raise ControlError("a token cannot expire after the year 9999: make one that does not expire")
        secret = None if anonymous else secrets.token_urlsafe(32)
        token = Token(
            id="".join(secrets.choice(_ID_ALPHABET) for _ in range(ID_LENGTH)),
            name=name,
            secret_hash=None if secret is None else _hash(secret),
            grant=grant,
            created=now_ms,
            expires=expires,
            revoked=None,
        )
        try:
            with self._db:
                if len(self.tokens()) >= TOKENS_MAX:
                    raise ControlError(f"{self._path} holds {TOKENS_MAX} tokens, which is all it may")
                self._db.execute(INSERT, _row(token))
        except apsw.Error as error:
            raise _unusable(self._path, error) from error
        return token, None if secret is None else f"eq_{token.id}_{secret}"

    def revoke(self, named: str, *, now_ms: int) -> Token:
        """End a token, given by its id or its name; return it as it was. One that is revoked already stays so.

        Where one's name is another's id, the id counts. Raises ControlError where none, or several, are called that.
        """
        found = self._read(NAMED, named, named) if named.isprintable() else []
        found = [one for one in found if one.id == named] or found
        holding = [one for one in found if one.revoked is None]
        if not found:
            raise ControlError(f"there is no token {named!r}: `edgequeues token list` shows them")
        if len(holding) > 1:
            several = ", ".join(one.id for one in holding)
            raise ControlError(f"{len(holding)} tokens are called {named!r}: give one of the ids {several}")
        try:
            for one in holding:
                self._db.execute(REVOKE, (now_ms, one.id))
        except apsw.Error as error:
            raise _unusable(self._path, error) from error
        return (holding or found)[0]

    # -- specs ------------------------------------------------------------------------------------------

    def specs(self) -> list[SpecRow]:
        """All specs that hold, by space and app. Raises ControlError."""
        try:
            rows: list[tuple[Any, ...]] = self._db.execute(SPECS).fetchall()
            return [SpecRow(*row) for row in rows]
        except apsw.Error as error:
            raise _unusable(self._path, error) from error

    def put_spec(self, row: SpecRow) -> None:
        """Have a spec hold from the next start, instead of the one its app had. Raises ControlError."""
        self._write(PUT_SPEC, *row)

    def remove_spec(self, space: str, app: str) -> None:
        """Have the spec of an app hold no more. Raises ControlError."""
        self._write(REMOVE_SPEC, space, app)

    # -- the file ---------------------------------------------------------------------------------------

    def _write(self, statement: str, *values: object) -> None:
        try:
            self._db.execute(statement, values)
        except apsw.Error as error:
            raise _unusable(self._path, error) from error

    def _read(self, statement: str, *values: str) -> list[Token]:
        try:
            return [_token(row) for row in self._db.execute(statement, values).fetchall()]
        except (apsw.Error, msgspec.DecodeError) as error:
            raise _unusable(self._path, error) from error

    def _version(self) -> int:
        try:
            found: int = self._db.pragma("data_version")
        except apsw.BusyError:
            return self._seen
        except apsw.Error as error:
            raise _unusable(self._path, error) from error
        return found


def image(folder: Path) -> bytes:
    """The file of a data folder as it is now, whoever has it open. Raises ControlError."""
    with Control.open(folder, create=False) as control:
        try:
            return control._db.serialize("main")
        except apsw.Error as error:
            raise _unusable(control._path, error) from error


def _migrate(path: Path, db: apsw.Connection) -> None:
    found: int = db.pragma("user_version")
    if found > _SCHEMA:
        raise ControlError(
            f"{path} was written by a newer edgequeues (schema {found}, not {_SCHEMA}): use that"
        )
    if found < 1:
        db.execute(DDL)
    if found < 2:
        db.execute(STEP_2)
    db.pragma("user_version", _SCHEMA)


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _row(token: Token) -> tuple[object, ...]:
    grant = token.grant
    lists = [msgspec.json.encode(sorted(part)).decode() for part in (grant.verbs, grant.spaces, grant.queues)]
    return (token.id, token.name, token.secret_hash, *lists, token.created, token.expires)


def _token(row: tuple[Any, ...]) -> Token:
    token_id, name, secret_hash, verbs, spaces, queues, created, expires, revoked = row
    grant = Grant(
        msgspec.json.decode(verbs, type=frozenset[Verb]),
        msgspec.json.decode(spaces, type=tuple[str, ...]),
        msgspec.json.decode(queues, type=tuple[str, ...]),
    )
    return Token(token_id, name, secret_hash, grant, created, expires, revoked)


def _unusable(path: Path, error: Exception) -> ControlError:
    if isinstance(error, apsw.BusyError):
        return ControlError(f"{path} is locked by another process, which should take a moment: try again")
    return ControlError(
        f"{path} cannot be used: {error}. It holds the tokens: see that it is a SQLite file that you may write, in a "
        "folder that you may write"
    )
