"""A statement as it was read: its sources, what it selects, its condition. Small to pickle."""

from collections.abc import Iterator
from dataclasses import dataclass

from spark_streams.sql.errors import Place
from spark_streams.sql.text.tree import Binary, Node, Selected


@dataclass(frozen=True, slots=True)
class Source:
    """A topic or product by the name that the text gives it, and the alias that columns use."""

    name: str
    alias: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class Joined:
    """A table that is joined; `outer` for LEFT JOIN; `on` is None without a condition."""

    source: Source
    outer: bool
    on: Node | None


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement.

    text: as it was written.
    destination: name behind INSERT INTO, None for a SELECT alone.
    stream: what stands behind FROM.
    joined: tables in their order.
    select: the items of the SELECT list.
    where: the condition, None if there is none.
    of_rows: what stands behind FROM is a table, `TABLE(topic)`: each change of a row gives the row
        of the result, or its end.
    """

    text: str
    destination: Source | None
    stream: Source
    joined: tuple[Joined, ...]
    select: tuple[Selected, ...]
    where: Node | None
    of_rows: bool = False

    @property
    def sources(self) -> tuple[Source, ...]:
        """The stream, then the tables."""
        return (self.stream, *(one.source for one in self.joined))

    def place(self, node: Node) -> Place:
        """Where an expression begins."""
        return Place.of(self.text, node.start)

    def written(self, node: Node) -> str:
        """An expression as it stands in the text."""
        return self.text[node.start : node.end]


def conjuncts(node: Node) -> Iterator[Node]:
    """The parts of a condition that all have to hold."""
    if isinstance(node, Binary) and node.op == "and":
        yield from conjuncts(node.left)
        yield from conjuncts(node.right)
    else:
        yield node
