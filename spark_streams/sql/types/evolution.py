"""Whether records would give other rows by a new schema than by an earlier one. Pure.

Rows of `TABLE(...)` stay as they were made. Each record was written by one of the schemas that were
registered by then: a column of its row is a field of the record, by the field's own name or by an
alias, or the default of a field that it lacks. Where that is another one by the new schema, the row
would be another.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mesh_events.schema.full_names import PRIMITIVE, fields_of, named_types, with_full_names
from spark_streams.sql.types.shape import row_record

_NOTHING = object()
_Found = Iterator[tuple[str, str]]


def other_values(
    earlier: Sequence[Any], after: Any, columns: Mapping[str, bool]
) -> list[tuple[str, str]]:
    """(path, reason) of each field that would be another value of a row.

    Args:
        earlier: the schemas by which records may have been written when rows were made, parsed and
            without recursion; by the last of them they were read.
        after: the schema by which they would be read now.
        columns: name of each column that makes rows -> whether something is computed with it, so
            that its type counts, too.
    """
    now, then = _Row.of(after), _Row.of(earlier[-1])
    if now.is_change != then.is_change:
        return [(now.record["name"], "has the fields of a change, or had them")]
    comparison = _Comparison(now, then, columns)
    # which lives as long as the comparison: it knows their parts by their identity
    writers = [row for row in map(_Row.of, earlier) if row.is_change == now.is_change]
    found: dict[str, str] = {}
    for writer in writers:
        for path, why in comparison.over(writer):
            found.setdefault(path, why)
    return list(found.items())


@dataclass(frozen=True)
class _Row:
    """A schema, and in it the record that a row is."""

    record: Mapping[str, Any]
    is_change: bool
    names: Mapping[str, Any]

    @classmethod
    def of(cls, schema: Any) -> "_Row":
        whole = with_full_names(schema)
        record, is_change = row_record(whole)
        return cls(record, is_change, named_types(whole))

    def definition(self, kind: Any) -> Any:
        """What a name stands for, and a type in braces."""
        while isinstance(kind, dict) and isinstance(kind.get("type"), dict | list):
            kind = kind["type"]
        if isinstance(kind, dict) and kind.get("type") in self.names and "fields" not in kind:
            kind = kind["type"]
        return self.names.get(kind, kind) if isinstance(kind, str) else kind

    def branches(self, kind: Any) -> list[Any]:
        """Those of a union but null; the type itself where it is none."""
        kind = self.definition(kind)
        every = kind if isinstance(kind, list) else [kind]
        return [one for one in map(self.definition, every) if _kind(one) != "null"]


class _Comparison:
    """How the fields of rows are found in what was written, by two schemas."""

    def __init__(self, now: _Row, then: _Row, columns: Mapping[str, bool]) -> None:
        self._now, self._then, self._columns = now, then, columns
        self._met: set[tuple[int, int, int, bool]] = set()
        self._known: dict[int, dict[str, Mapping[str, Any]]] = {}

    def over(self, writer: _Row) -> _Found:
        """Where they differ for records of one writer."""
        now, then = self._now.record, self._then.record
        for field in fields_of(now):
            if (computed := self._columns.get(field["name"])) is not None:
                yield from self._field(field, now, then, writer.record, writer, computed=computed)

    def _field(
        self,
        field: Mapping[str, Any],
        now: Mapping[str, Any],
        then: Mapping[str, Any],
        written: Mapping[str, Any],
        writer: _Row,
        *,
        computed: bool,
    ) -> _Found:
        path = f"{now['name']}.{field['name']}"
        before = self._fields(then).get(field["name"])
        from_now = self._source(field, written)
        if before is None:
            # where it is missing in a row it is null
            if from_now is not None:
                yield path, f"is {from_now} of earlier records, and their rows lack it"
            elif field.get("default") is not None:
                yield path, "is new, and earlier records have its default"
            return
        from_then = self._source(before, written)
        if from_now != from_then:
            yield path, f"was {_told(from_then)} before, and is {_told(from_now)}"
        elif from_now is None:
            if not _same(before.get("default", _NOTHING), field.get("default", _NOTHING)):
                yield path, "has another default, which earlier records have"
        else:
            kinds = field["type"], before["type"], self._fields(written)[from_now]["type"]
            yield from self._type(path, *kinds, writer, computed=computed)

    def _source(self, field: Mapping[str, Any], written: Mapping[str, Any]) -> str | None:
        """The field that was written which a reader's takes; None for its default."""
        names = self._fields(written)
        # as Avro's readers: what was written is called by an alias before names are looked for
        known = [one for one in (*field.get("aliases", ()), field["name"]) if one in names]
        return known[0] if known else None

    def _fields(self, record: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """By their names."""
        if id(record) not in self._known:
            self._known[id(record)] = {one["name"]: one for one in fields_of(record)}
        return self._known[id(record)]

    def _type(
        self, path: str, now: Any, then: Any, written: Any, writer: _Row, *, computed: bool
    ) -> _Found:
        for one in self._now.branches(now):
            kind = _kind(one)
            befores = _alike(one, self._then.branches(then))
            if computed and kind in PRIMITIVE and not befores:
                yield path, "has another type, and something is computed with it"
            for before in befores:
                for source in _alike(one, writer.branches(written)):
                    met = id(one), id(before), id(source), computed
                    if met not in self._met:
                        self._met.add(met)
                        yield from self._inner(path, one, before, source, writer, computed=computed)

    def _inner(
        self, path: str, now: Any, then: Any, written: Any, writer: _Row, *, computed: bool
    ) -> _Found:
        if _kind(now) == "record":
            for field in fields_of(now):
                yield from self._field(field, now, then, written, writer, computed=computed)
        for key in ("items", "values"):
            if isinstance(now, dict) and key in now:
                kinds = now[key], then[key], written[key]
                yield from self._type(path, *kinds, writer, computed=computed)


def _told(source: str | None) -> str:
    return "its default" if source is None else source


def _kind(kind: Any) -> Any:
    return kind.get("type") if isinstance(kind, dict) else kind


def _alike(kind: Any, others: Sequence[Any]) -> list[Any]:
    """Those of the same kind; of several records the one with the same short name."""
    same = [one for one in others if _kind(one) == _kind(kind)]
    if _kind(kind) != "record" or len(same) < 2:
        return same
    short = kind["name"].rpartition(".")[2]
    return [one for one in same if one["name"].rpartition(".")[2] == short]


def _same(one: Any, other: Any) -> bool:
    """Whether two defaults are one value: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
