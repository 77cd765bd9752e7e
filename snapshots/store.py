"""The file of snapshots: for each table of the image the rows as they changed, by offset.

A row of `versions` holds from the snapshot `at` on, until a later one of the same table and key;
an empty value ends it. So what a snapshot costs is what changed since the one before, and what is
asked of an old image costs a search in an index. Rows are fetched when they are asked for. A large
field, as a connector's config, is in `fields` once, by its hash, however often its row changes.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from immutables import Map

from mesh_events.errors import MeshError
from projections.image import Image
from projections.integrity.tree import CompactRange
from projections.table import TOMBSTONE, OverlayMap, PairsMapping, Table
from snapshots.image_tables import TABLES, Rest, put_together, take_apart
from snapshots.values import Decoder, decoder, encode, joined, split

K = TypeVar("K")
V = TypeVar("V")
BUSY_S = 5
"""So long a reader waits for a writer that changes the file's index."""
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LARGEST = 2**63 - 1
"""SQLite knows no larger number; no log reaches it."""
_LAYOUT = """
CREATE TABLE IF NOT EXISTS snapshots (
    at INTEGER PRIMARY KEY, time INTEGER NOT NULL, clock INTEGER NOT NULL, head BLOB
);
CREATE INDEX IF NOT EXISTS snapshots_by_clock ON snapshots (clock, at);
CREATE TABLE IF NOT EXISTS versions (
    tab INTEGER, key BLOB, at INTEGER, value BLOB NOT NULL, large BLOB, PRIMARY KEY (tab, key, at)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fields (hash BLOB PRIMARY KEY, value BLOB NOT NULL);
"""


class SnapshotError(MeshError):
    """The file of snapshots cannot be used; it can be thrown away, and is made again."""


class DamagedError(SnapshotError):
    """What a file holds cannot be read: `place.put_aside` it, and it is made again.

    `inode` tells the file from another one that has taken its `path` meanwhile.
    """

    def __init__(self, text: str, path: Path, inode: int) -> None:
        super().__init__(text)
        self.path, self.inode = path, inode


class BusyError(SnapshotError):
    """Another process writes snapshots now."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An image at the offset of one record, and the log's tree up to there.

    Args:
        rest: the image without its tables.
        tables: name of the table in the image -> its number in the file.
        tree: over the log's records up to this one.
        leaf: this record's hash in the tree.
        unverified: offsets behind the snapshot before, whose signature does not verify.
    """

    rest: Rest = field(default_factory=Rest)
    tables: dict[str, int] = field(default_factory=dict)
    tree: CompactRange = field(default_factory=CompactRange)
    leaf: bytes = b""
    unverified: tuple[int, ...] = ()

    @property
    def offset(self) -> int:
        """Of its record, -1 for the one before the log's first."""
        return self.rest.offset


ORIGIN = Snapshot()
"""Before the first record."""


class StoredTable(PairsMapping[K, V]):
    """One table as a snapshot holds it."""

    __slots__ = ("_cache", "_file", "_key", "_length", "_value", "at", "number")

    def __init__(self, file: "Store", number: int, kinds: tuple[Any, Any], at: int) -> None:
        self._file, self.number, self.at = file, number, at
        self._key: Decoder[K] = decoder(kinds[0])
        self._value: Decoder[V] = decoder(kinds[1])
        self._cache: dict[K, V] = {}
        self._length: int | None = None

    def __len__(self) -> int:
        if self._length is None:
            with self._file.translated():
                self._length = self._file.length(self.number, self.at)
        return self._length

    def __getitem__(self, key: K) -> V:
        found: V | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: K, default: Any = None, /) -> Any:
        """As of any mapping."""
        found = self._cache.get(key)
        if found is None:
            try:
                name = encode(key)
            except UnicodeEncodeError:
                # no record can hold it
                return default
            with self._file.translated():
                data = self._file.version(self.number, name, self.at)
                if not data:
                    return default
                found = self._cache[key] = self._value(data)
        return found

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]  # anything may be asked for

    def pairs(self) -> Iterator[tuple[K, V]]:
        """Every key with its value."""
        with self._file.translated():
            for key, data in self._file.versions(self.number, self.at):
                if data:
                    yield self._key(key), self._value(data)

    def advance(self, at: int, changes: Mapping[K, V | Any]) -> None:
        """Stand at a later snapshot, before which these rows changed; for the writer alone."""
        self.at, self._length = at, None
        for key, value in changes.items():
            if value is TOMBSTONE:
                self._cache.pop(key, None)
            else:
                self._cache[key] = value


class Store:
    """The snapshots of one log in one file, used by one thread at a time.

    Args:
        path: the file; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers = 0
        self.inode = -1
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            self.inode = path.stat().st_ino
            self._db = sqlite3.connect(
                path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Images that were found here can be asked no more."""
        self._db.close()

    def newest(self) -> Snapshot:
        """The latest one, ORIGIN if there is none."""
        return self._one("ORDER BY at DESC") or ORIGIN

    def until(self, offset: int) -> Snapshot:
        """The latest one that stands at an offset or before it."""
        return self._one("WHERE at <= ? ORDER BY at DESC", min(offset, _LARGEST)) or ORIGIN

    def as_of(self, time: int) -> Snapshot:
        """The latest one whose record is not later than a time, ms by the mesh's clock.

        A record before it may be later, where the clock of a broker was ahead.
        """
        later = self.decided_after(time)
        end = _LARGEST if later is None else later.offset
        where = "WHERE time <= ? AND at < ? ORDER BY at DESC"
        return self._one(where, min(time, _LARGEST), end) or ORIGIN

    def decided_after(self, time: int) -> Snapshot | None:
        """The first one that holds a decision later than a time: the state as of it is before."""
        return self._one("WHERE clock > ? ORDER BY clock, at", min(time, _LARGEST))

    def after(self, snapshot: Snapshot) -> Snapshot | None:
        """The next one."""
        return self._one("WHERE at > ? ORDER BY at", snapshot.offset)

    def count(self) -> int:
        """How many there are."""
        with self.translated():
            return int(self._db.execute("SELECT count(*) FROM snapshots").fetchone()[0])

    def unverified(self, until: Snapshot, since: Snapshot = ORIGIN) -> list[int]:
        """Offsets behind a snapshot, up to another, whose signature does not verify."""
        with self.translated():
            heads = self._db.execute(
                "SELECT head FROM snapshots WHERE at > ? AND at <= ? ORDER BY at",
                (since.offset, until.offset),
            )
            return [one for (head,) in heads for one in decoder(Snapshot)(head).unverified]

    def image(self, snapshot: Snapshot) -> Image:
        """The image; its rows are fetched when they are asked for."""
        tables: dict[str, Table[Any, Any]] = {}
        for name, kinds in TABLES.items():
            number = snapshot.tables.get(name)
            tables[name] = (
                Map()
                if number is None
                else OverlayMap(StoredTable(self, number, kinds, snapshot.offset))
            )
        return put_together(snapshot.rest, tables)

    def whole_image(self, snapshot: Snapshot) -> Image:
        """The image with all its rows in memory."""
        rest, tables = take_apart(self.image(snapshot))
        return put_together(rest, {name: Map(table.items()) for name, table in tables.items()})

    @contextmanager
    def writing(self) -> Iterator[None]:
        """What is appended stands in the file once this ends well, all of it or nothing.

        Raises BusyError if another process writes.
        """
        try:
            self._db.execute("PRAGMA busy_timeout = 0")
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise self._unusable(error) from error
            raise BusyError(f"{self.path} is being written by another process") from error
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {BUSY_S * 1000}")
        try:
            yield
        except BaseException:
            # a full disk has rolled it back already
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise
        with self.translated():
            self._db.execute("COMMIT")

    def append(
        self, image: Image, tree: CompactRange, leaf: bytes, unverified: tuple[int, ...]
    ) -> Image:
        """Write a snapshot behind the newest one; returns the image as it goes on from there.

        The image must come of the one that `image(newest())` or the last `append` gave, and that
        one must not be used any more.
        """
        rest, tables = take_apart(image)
        with self.translated():
            kept = {name: self._keep(name, table, rest.offset) for name, table in tables.items()}
            numbers = {name: base.number for name, base in kept.items()}
            head = encode(Snapshot(rest, numbers, tree, leaf, unverified))
            row = (rest.offset, rest.time, rest.clock, head)
            self._db.execute("INSERT INTO snapshots VALUES (?, ?, ?, ?)", row)
        return put_together(rest, {name: OverlayMap(base) for name, base in kept.items()})

    def version(self, number: int, key: bytes, at: int) -> bytes | None:
        """The bytes of a row at a snapshot; none or empty if there is none."""
        row = self._db.execute(
            "SELECT value, large FROM versions WHERE tab = ? AND key = ? AND at <= ? "
            "ORDER BY at DESC LIMIT 1",
            (number, key, at),
        ).fetchone()
        return self._whole(*row) if row else None

    def versions(self, number: int, at: int) -> Iterator[tuple[bytes, bytes]]:
        """(key, bytes) of each row at a snapshot; the bytes are empty where it has ended."""
        # SQLite takes the other columns of a group from the row that has the maximum
        found = self._db.execute(
            "SELECT key, value, large, max(at) FROM versions "
            "WHERE tab = ? AND at <= ? GROUP BY key",
            (number, at),
        )
        return ((key, self._whole(value, large)) for key, value, large, _ in found)

    def length(self, number: int, at: int) -> int:
        """How many rows there are at a snapshot; none is read."""
        found: int = self._db.execute(
            "SELECT count(*) FROM (SELECT length(value) AS bytes, max(at) FROM versions "
            "WHERE tab = ? AND at <= ? GROUP BY key) WHERE bytes > 0",
            (number, at),
        ).fetchone()[0]
        return found

    @contextmanager
    def translated(self) -> Iterator[None]:
        """What goes wrong in the file is told as a SnapshotError."""
        try:
            yield
        except (sqlite3.Error, msgspec.MsgspecError, ValueError, KeyError) as error:
            raise self._unusable(error) from error

    def _keep(self, name: str, table: Table[Any, Any], at: int) -> StoredTable[Any, Any]:
        """Write what has changed in a table, or all of one that is not in the file yet."""
        if isinstance(table, OverlayMap) and isinstance(table.base, StoredTable):
            base, changes = table.base, table.changes
        else:
            base, changes = StoredTable(self, self._unused(), TABLES[name], at), Map(table.items())
        self._write(base.number, at, changes)
        base.advance(at, changes)
        return base

    def _unused(self) -> int:
        """A number that no table has; one that was given to a table without rows counts, too."""
        (most,) = self._db.execute("SELECT coalesce(max(tab), 0) FROM versions").fetchone()
        self._numbers = max(self._numbers, most, *self.newest().tables.values()) + 1
        return self._numbers

    def _write(self, number: int, at: int, changes: Map[Any, Any]) -> None:
        self._db.executemany(
            "INSERT INTO versions VALUES (?, ?, ?, ?, ?)",
            (
                (
                    number,
                    encode(key),
                    at,
                    *((b"", None) if value is TOMBSTONE else self._parts(value)),
                )
                for key, value in changes.items()
            ),
        )

    def _parts(self, value: Any) -> tuple[bytes, bytes | None]:
        """What stands in a version of a row; its large fields are in the file then."""
        row, large = split(encode(value))
        if not large:
            return row, None
        hashes = {name: sha256(one).digest() for name, one in large.items()}
        self._db.executemany(
            "INSERT OR IGNORE INTO fields VALUES (?, ?)",
            ((hashes[name], one) for name, one in large.items()),
        )
        return row, encode(hashes)

    def _whole(self, row: bytes, large: bytes | None) -> bytes:
        """The bytes of a row with all its fields."""
        if large is None:
            return row
        found = {
            name: self._db.execute("SELECT value FROM fields WHERE hash = ?", (one,)).fetchone()
            for name, one in decoder(dict[str, bytes])(large).items()
        }
        if None in found.values():
            raise ValueError("a field of a row is missing")
        return joined(row, {name: one[0] for name, one in found.items()})

    def _one(self, where: str, *values: int) -> Snapshot | None:
        with self.translated():
            row = self._db.execute(
                f"SELECT head FROM snapshots {where} LIMIT 1",  # noqa: S608 - our own words
                values,
            ).fetchone()
            found: Snapshot | None = decoder(Snapshot)(row[0]) if row else None
        return found

    def _prepare(self) -> None:
        # what a crash of the machine loses is made again
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(_LAYOUT)

    def _unusable(self, error: Exception) -> SnapshotError:
        code = getattr(error, "sqlite_errorcode", None)
        if isinstance(error, OSError | sqlite3.Error) and code not in _DAMAGE:
            return SnapshotError(
                f"the snapshots {self.path} cannot be used ({error}): mend that or remove the "
                "file, it is made again from the log"
            )
        text = f"the snapshots {self.path} cannot be read ({error})"
        remedy = "remove the file, it is made again from the log"
        return DamagedError(f"{text}: {remedy}", self.path, self.inode)
