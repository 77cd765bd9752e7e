"""The tables of an image: immutable maps, whole in memory or laid over one that lies elsewhere."""

from abc import abstractmethod
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from enum import Enum
from typing import Any, TypeAlias, TypeVar, overload

from immutables import Map

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")
N = TypeVar("N")


class Tombstone(Enum):
    """What stands for a key that the table below still has."""

    TOMBSTONE = "tombstone"


TOMBSTONE = Tombstone.TOMBSTONE


class PairsMapping(Mapping[K, V]):
    """A mapping that is read whole as pairs, since finding each key again would cost more."""

    __slots__ = ()

    @abstractmethod
    def pairs(self) -> Iterator[tuple[K, V]]:
        """Every key with its value."""

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self.pairs())

    def __len__(self) -> int:
        return sum(1 for _ in self.pairs())

    def items(self) -> ItemsView[K, V]:
        """As of any mapping."""
        return _Items(self)

    def values(self) -> ValuesView[V]:
        """As of any mapping."""
        return _Values(self)


class _Items(ItemsView[K, V]):
    _mapping: PairsMapping[K, V]

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return self._mapping.pairs()


class _Values(ValuesView[V]):
    _mapping: PairsMapping[Any, V]

    def __iter__(self) -> Iterator[V]:
        return (value for _, value in self._mapping.pairs())


class OverlayMap(PairsMapping[K, V]):
    """A table whose rows are looked up in `base` until they are changed.

    A changed table is a new one; `base` is shared, and must not change while it is. Who asks for
    the length has it counted once, and then with each change.
    """

    __slots__ = ("_length", "base", "changes")

    def __init__(
        self,
        base: Mapping[K, V],
        changes: Map[K, V | Tombstone] | None = None,
        length: int | None = None,
    ) -> None:
        self.base, self._length = base, length
        self.changes: Map[K, V | Tombstone] = Map() if changes is None else changes

    def __len__(self) -> int:
        if self._length is None:
            added = sum(
                (one is not TOMBSTONE) - (key in self.base) for key, one in self.changes.items()
            )
            self._length = len(self.base) + added
        return self._length

    def __getitem__(self, key: K) -> V:
        found = self.changes.get(key)
        if found is None:
            return self.base[key]
        if found is TOMBSTONE:
            raise KeyError(key)
        return found

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...
    def get(self, key: K, /, default: V | D | None = None) -> V | D | None:
        """As of any mapping."""
        found = self.changes.get(key)
        if found is None:
            return self.base.get(key, default)
        return default if found is TOMBSTONE else found

    def __contains__(self, key: object) -> bool:
        found = self.changes.get(key)  # type: ignore[arg-type]  # anything may be asked for
        return found is not TOMBSTONE if found is not None else key in self.base

    def __repr__(self) -> str:
        return f"OverlayMap({dict(self.pairs())!r})"

    def set(self, key: K, value: V) -> "OverlayMap[K, V]":
        """The table with another row."""
        length = self._length
        if length is not None and key not in self:
            length += 1
        return OverlayMap(self.base, self.changes.set(key, value), length)

    def delete(self, key: K) -> "OverlayMap[K, V]":
        """The table without a row. Raises KeyError if there is none."""
        if key not in self:
            raise KeyError(key)
        length = None if self._length is None else self._length - 1
        return OverlayMap(self.base, self.changes.set(key, TOMBSTONE), length)

    def pairs(self) -> Iterator[tuple[K, V]]:
        """Every key with its value."""
        for key, value in self.base.items():
            if key not in self.changes:
                yield key, value
        for key, found in self.changes.items():
            if found is not TOMBSTONE:
                yield key, found


Table: TypeAlias = Map[K, V] | OverlayMap[K, V]
"""What an image holds: `get`, `set`, `delete`, `items` and the rest of a mapping."""


def with_entry(
    index: Table[K, Map[N, int]], key: K, name: N, number: int | None
) -> Table[K, Map[N, int]]:
    """The index with a number for a name under a key.

    None takes the name out, and the key with its last name.
    """
    known: Map[N, int] = index.get(key) or Map()
    if known.get(name) == number:
        return index
    left = known.delete(name) if number is None else known.set(name, number)
    return index.set(key, left) if left else index.delete(key)
