"""Whose column a name of a statement is. Pure.

Names are compared without regard to case, as Spark does.
"""

from collections.abc import Iterable, Mapping, Sequence

from mesh_events.spelling import nearest
from spark_streams.sql.errors import Place, SqlError
from spark_streams.sql.functions.allowed import NOT_OF_THE_RECORD, clock
from spark_streams.sql.text.statement import Statement
from spark_streams.sql.text.tree import Column, Lambda, Name, Node, Parameter, with_children
from spark_streams.sql.types.operands import Operand

Columns = Mapping[str, Sequence[str]]
"""Alias of a source -> names of its columns."""
OF_RECORD = ("_key", "_partition", "_offset", "_timestamp")
"""Columns that each record of a stream has, unless its values have one of that name; not in `*`."""
_SHOWN = 12
"""So many columns are named where none is like the one that was meant."""


class Names:
    """Knows whose column a name is.

    known: alias -> column in lower case -> the column as its source spells it.
    """

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self.known: dict[str, dict[str, str]] = {}
        self._aliases: dict[str, str] = {}
        self._columns: dict[str, Sequence[str]] = {}

    def add(self, alias: str, columns: Columns) -> None:
        """From here on a name may be a column of this source, too."""
        # of two that differ in case only, the first one is meant
        self.known[alias] = {name.lower(): name for name in reversed(columns[alias])}
        self._aliases[alias.lower()] = alias
        self._columns[alias] = columns[alias]

    def place(self, node: Node) -> Place:
        """Where an expression begins."""
        return self._statement.place(node)

    def alias(self, name: str, node: Node) -> str:
        """The source of that name."""
        if name.lower() not in self._aliases:
            raise SqlError(
                "unknown_column",
                f"there is no source called {name}{like(name, self._aliases.values())}",
                self.place(node),
            )
        return self._aliases[name.lower()]

    def resolved(self, node: Node, params: frozenset[str] = frozenset()) -> Node:
        """The expression with each name as a column of its source.

        Args:
            node: as it was read.
            params: parameters of the lambdas around it, in lower case.
        """
        if isinstance(node, Name):
            first = node.parts[0].lower()
            place = {"start": node.start, "end": node.end}
            if first in params:
                return Parameter(first, node.parts[1:], **place)
            alias, path = self._split(node)
            return Column(alias, tuple(path), **place)
        if isinstance(node, Lambda):
            params |= {one.lower() for one in node.params}
        return with_children(node, lambda child: self.resolved(child, params))

    def every(self, alias: str) -> Sequence[str]:
        """The columns of a source, in their order."""
        return self._columns[alias]

    def operand(self, node: Node) -> Operand:
        """The resolved expression with where it stands."""
        return Operand(node, self._statement.text)

    def _split(self, node: Name) -> tuple[str, list[str]]:
        """The source's alias and the path below it, as the source spells its column."""
        parts = list(node.parts)
        if len(parts) > 1 and parts[0].lower() in self._aliases:
            alias = self._aliases[parts[0].lower()]
            wanted = parts[1].lower()
            spelled = self.known[alias].get(wanted)
            if spelled is None and alias == self._statement.stream.alias and wanted in OF_RECORD:
                spelled = wanted
            if spelled is None:
                known = self.every(alias)
                raise SqlError(
                    "unknown_column",
                    f"{alias} has no column {parts[1]}{_column_like(parts[1], known)}",
                    self.place(node),
                )
            return alias, [spelled, *parts[2:]]
        owners = {
            alias: spelled
            for alias, columns in self.known.items()
            if (spelled := columns.get(parts[0].lower())) is not None
        }
        if len(owners) > 1:
            every = " or ".join(f"{alias}.{parts[0]}" for alias in owners)
            raise SqlError("ambiguous_column", f"write {every}", self.place(node))
        if not owners and parts[0].lower() in OF_RECORD:
            owners = {self._statement.stream.alias: parts[0].lower()}
        if not owners and len(parts) == 1 and parts[0].lower() in NOT_OF_THE_RECORD:
            raise SqlError("sql_not_supported", clock(parts[0].lower()), self.place(node))
        if not owners:
            every_column = [name for alias in self.known for name in self.every(alias)]
            raise SqlError(
                "unknown_column",
                f"no source has a column {parts[0]}{_column_like(parts[0], every_column)}",
                self.place(node),
            )
        [(alias, spelled)] = owners.items()
        return alias, [spelled, *parts[1:]]


def _column_like(name: str, known: Sequence[str]) -> str:
    """The same for a column; where none is like it, those that there are."""
    more = ", ..." if len(known) > _SHOWN else ""
    return like(name, known) or f"; there are {', '.join(known[:_SHOWN])}{more}"


def like(name: str, known: Iterable[str]) -> str:
    """A hint at what may have been meant."""
    near = nearest(name, known)
    return f"; is {near} meant?" if near else ""
