"""What every node of a tree has: its place in the text, and the nodes below it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of an expression, with the characters of the text that it stands in."""

    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    @property
    def children(self) -> "tuple[Node, ...]":
        """The nodes directly below, in the order of the text."""
        return ()

    def walk(self) -> "Iterator[Node]":
        """This node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def with_children(node: Node, change: Any) -> Node:
    """The node with `change` done to each child; the node itself where it has none."""

    def changed(value: Any) -> Any:
        if isinstance(value, Node):
            return change(value)
        return tuple(map(changed, value)) if isinstance(value, tuple) else value

    if not node.children:
        return node
    return replace(node, **{one.name: changed(getattr(node, one.name)) for one in fields(node)})
