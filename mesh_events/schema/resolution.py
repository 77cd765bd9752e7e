"""Comparison of two Avro schemas: where a reader cannot read what a writer wrote. Pure.

Each pair of records is compared once, whatever it is called from, so that types within themselves
end. What was written as one branch of a union is read as the one that Avro's readers pick.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from mesh_events.schema.full_names import named_types, with_full_names
from mesh_events.schema.size import SchemaTooLargeError, require_bounded
from mesh_events.schema.times import is_zoned, times_of

_TOP = "the value"
MOST_STEPS = 500_000
"""Pairs of types that one comparison looks at."""
_PROMOTED = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""What was written -> what else it can be read as."""
_ROUNDED = {("int", "float"), ("long", "float"), ("long", "double")}
"""(What was written, what it is read as) where that has no room for all digits."""
OTHER_TIME = ": the same number means another time"
NO_TIME = ": a text is no time, or another one"
OTHER_NUMBER = ": the same digits mean another number"
OTHER_BRANCH = ": the same position means another branch"
OTHER_SHAPE = ": a value by itself is no branch among several"
LOST_DIGITS = ": large numbers lose digits"
OTHER_SYMBOL = ": what was written is read as another symbol"
_ONE_NUMBER = ({"int", "long"}, {"float", "double"})
"""Unions beside null that Spark reads as one number."""
_DECIMALS = ("decimal", "custom-decimal")
"""The latter is Spark's own, of a long: to all others it is a long."""
_MARKS = {"array": "[]", "map": "{}"}
_Reason = tuple[str, str]
_Place = tuple[str, Any, Any]
"""A path, and what is read and what was written there."""


class Comparison:
    """A reader's and a writer's Avro schema, parsed from JSON.

    reader: the reader's, with full names.

    Raises SchemaTooLargeError where one of them is too large; so do both methods where they take
    more than `MOST_STEPS` steps.
    """

    def __init__(self, reader: Any, writer: Any) -> None:
        require_bounded(reader, "the reader's schema")
        require_bounded(writer, "the writer's schema")
        self.reader, self._writer = with_full_names(reader), with_full_names(writer)
        self._read, self._written = named_types(self.reader), named_types(self._writer)

    def reasons(self) -> Iterator[_Reason]:
        """(path, reason) of each place that does not fit.

        A pair of records is told where it is met first.
        """
        for path, reader, writer in self._places():
            if isinstance(reader, list) or isinstance(writer, list):
                yield from self._union_reasons(reader, writer, path or _TOP)
            elif _are_alike(reader, writer):
                missing = (name for name, inner in field_pairs(reader, writer) if inner is None)
                for name in missing:
                    yield _below(path, name), "it was not written and has no default"
            else:
                yield from _plain_reasons(reader, writer, path or _TOP)

    def pairs(self) -> list[tuple[Any, Any]]:
        """Each record of the reader with each of the writer's that it reads."""
        return [
            (reader, writer)
            for _, reader, writer in self._places()
            if not isinstance(reader, list) and _are_alike(reader, writer)
        ]

    def _places(self) -> Iterator[_Place]:
        """Where one type is read as another, once for each pair of records.

        There are no arrays and maps among them. Behind a union come its branches.
        """
        left: list[_Place] = [("", self.reader, self._writer)]
        met: set[tuple[int, int]] = set()
        steps = 0
        while left:
            path, reader, writer = left.pop()
            reader, writer = _definition(reader, self._read), _definition(writer, self._written)
            steps += _count(reader) * _count(writer)
            if steps > MOST_STEPS:
                raise SchemaTooLargeError(
                    f"comparing the schemas takes more than {MOST_STEPS} steps: use fewer types "
                    "in their unions"
                )
            # by the identity of both definitions, which the schemas keep alive
            pair = id(reader), id(writer)
            if isinstance(reader, list) or isinstance(writer, list):
                yield path, reader, writer
                for branch, read in reversed(self._picks(reader, writer)):
                    left += [(path, one, branch) for one in reversed(read)]
            elif kind_of(reader) == kind_of(writer) and kind_of(reader) in _MARKS:
                left.append((path + _MARKS[kind_of(reader)], _inner(reader), _inner(writer)))
            elif not _are_alike(reader, writer):
                yield path, reader, writer
            elif pair not in met:
                met.add(pair)
                yield path, reader, writer
                fields = [(name, *inner) for name, inner in field_pairs(reader, writer) if inner]
                left += [(_below(path, name), *inner) for name, *inner in reversed(fields)]

    def _picks(self, reader: Any, writer: Any) -> list[tuple[Any, list[Any]]]:
        """Each branch that was written, with those that it may be read as."""
        branches = writer if isinstance(writer, list) else [writer]
        written = [_definition(one, self._written) for one in branches]
        if not isinstance(reader, list):
            return [(one, [reader]) for one in written]
        read = [_definition(one, self._read) for one in reader]
        return [(one, picked(read, one)) for one in written]

    def _union_reasons(self, reader: Any, writer: Any, here: str) -> Iterator[_Reason]:
        """At least one side is a union; what its branches are themselves is told elsewhere."""
        for branch, read in self._picks(reader, writer):
            if not read:
                yield here, f"{type_text(branch)} was written, which {type_text(reader)} is not"
        if _has_positions(reader) and _has_positions(writer):
            yield from self._moved(reader, writer, here)
        elif _has_positions(reader) != _has_positions(writer) and _beside_null(writer):
            told = f"{type_text(writer)} was written, {type_text(reader)} is read"
            yield here, f"{told}{OTHER_SHAPE}"

    def _moved(self, reader: list[Any], writer: list[Any], here: str) -> Iterator[_Reason]:
        """The first branch of two unions that is read at another position than it was written at.

        Readers such as Spark's call a branch by its position beside null, not by its type.
        """
        read = [_definition(one, self._read) for one in _beside_null(reader)]
        for position, branch in enumerate(_beside_null(writer)):
            one = _definition(branch, self._written)
            same = {id(found) for found in picked(read, one)}
            found = [number for number, other in enumerate(read) if id(other) in same]
            told = f"{type_text(one)} was written at position {position} of the union beside null"
            if any(number != position for number in found):
                others = " or ".join(str(number) for number in found)
                yield here, f"{told}, and is read at position {others}{OTHER_BRANCH}"
                return
            if not found and position < len(read):
                yield here, f"{told}, where {type_text(read[position])} is read{OTHER_BRANCH}"
                return


def _beside_null(schema: Any) -> list[Any]:
    """The branches of a union but for null; of another type itself."""
    branches = schema if isinstance(schema, list) else [schema]
    return [one for one in branches if kind_of(one) != "null"]


def _has_positions(schema: Any) -> bool:
    """Whether a value is one of several branches; else Spark reads it as itself."""
    kinds = [kind_of(one) for one in _beside_null(schema)]
    return len(kinds) > 1 and set(kinds) not in _ONE_NUMBER


def _count(schema: Any) -> int:
    """The branches of a type, one for what is no union."""
    return len(schema) if isinstance(schema, list) else 1


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def picked(branches: list[Any], writer: Any) -> list[Any]:
    """The branches of a reader's union that a type may be read as; all of them have to fit.

    It is one, the first of the same kind, or else the first that it can be promoted to. Of named
    types those with the full name, now or by an alias, or else those with the short one: readers
    differ in which of several they take.
    """
    kind = kind_of(writer)
    same = [one for one in branches if kind_of(one) == kind]
    if kind in ("record", "enum", "fixed"):
        of_name = [one for one in same if writer["name"] in _called(one)]
        named = of_name or [one for one in same if _is_called_alike(one, writer)]
        return named or ([] if kind == "record" else same)
    promoted = (one for one in branches if kind_of(one) in _PROMOTED.get(kind, ()))
    return same[:1] or list(islice(promoted, 1))


def field_pairs(reader: Any, writer: Any) -> Iterator[tuple[str, tuple[Any, Any] | None]]:
    """(name, (its type, the written one)) of a reader's fields; None for one that is missing."""
    written = {one["name"]: one["type"] for one in writer["fields"]}
    for one in reader["fields"]:
        known = [name for name in (one["name"], *one.get("aliases", ())) if name in written]
        if known:
            yield one["name"], (one["type"], written[known[0]])
        elif "default" not in one:
            yield one["name"], None


def _plain_reasons(reader: Any, writer: Any, here: str) -> Iterator[_Reason]:
    """Both sides are one type: no unions, arrays or maps, and no records of one name."""
    if (kind := kind_of(reader)) != kind_of(writer):
        yield from _promoted_reasons(reader, writer, here)
        return
    if kind in ("record", "enum", "fixed") and not _is_called_alike(reader, writer):
        yield here, f"the {kind} {writer['name']} was written, {reader['name']} is read"
    match kind:
        case "record":
            return
        case "enum":
            known = set(reader["symbols"])
            lost = [one for one in writer["symbols"] if one not in known]
            told = f"the symbols {', '.join(lost)} are missing"
            if lost and "default" in reader:
                yield here, f"{told} and the default is {reader['default']}{OTHER_SYMBOL}"
            elif lost:
                yield here, f"{told} and there is no default"
        case "fixed" if reader["size"] != writer["size"]:
            yield here, f"{writer['size']} bytes were written, {reader['size']} are read"
    read, written = _decimal(reader), _decimal(writer)
    if read != written:
        same_scale = read and written and read[:2] == written[:2]
        why = _other_number(reader, writer)
        yield here, why.removesuffix(OTHER_NUMBER) if same_scale else why
    yield from _time_reasons(reader, writer, here)


def _promoted_reasons(reader: Any, writer: Any, here: str) -> Iterator[_Reason]:
    """Both sides are of two kinds."""
    written, read = kind_of(writer), kind_of(reader)
    told = f"{type_text(writer)} was written, {type_text(reader)} is read"
    if read not in _PROMOTED.get(written, set()):
        yield here, told
    elif _decimal(reader) or _decimal(writer):
        # the digits of a text are no decimal's, nor the other way round
        yield here, _other_number(reader, writer)
    else:
        if (written, read) in _ROUNDED:
            yield here, f"{told}{LOST_DIGITS}"
        yield from _time_reasons(reader, writer, here)


def _other_number(reader: Any, writer: Any) -> str:
    return f"{type_text(writer)} was written, {type_text(reader)} is read{OTHER_NUMBER}"


def _time_reasons(reader: Any, writer: Any, here: str) -> Iterator[_Reason]:
    """Both sides may be numbers that tell a time; a plain number is none of them."""
    read, written = times_of(reader), times_of(writer)
    if len(read | written) > 1 or read != written:
        told = f"{_counted(writer, written)} was written, {_counted(reader, read)} is read"
        yield here, f"{told}{OTHER_TIME}"
    if is_zoned(reader) and not is_zoned(writer):
        yield here, f"{kind_of(writer)} was written, a time with a zone is read{NO_TIME}"


def _counted(schema: Any, times: frozenset[str]) -> str:
    """A number in a few words, by the time that it tells."""
    return " and ".join(sorted(times)) or f"{kind_of(schema)} without a unit of time"


def _are_alike(reader: Any, writer: Any) -> bool:
    """Whether both are records, and the reader's has the name of the writer's, or had it."""
    are_records = kind_of(reader) == kind_of(writer) == "record"
    return are_records and _is_called_alike(reader, writer)


def _is_called_alike(reader: Any, writer: Any) -> bool:
    """Whether a reader's type has the short name of the writer's, or had it."""
    return writer["name"].rpartition(".")[2] in {one.rpartition(".")[2] for one in _called(reader)}


def _called(schema: Any) -> tuple[str, ...]:
    """What a named type is called, and was."""
    return schema["name"], *schema.get("aliases", ())


def _decimal(schema: Any) -> tuple[str, str, str] | None:
    """Kind, scale and precision of a decimal, as texts: 10.0 equals 10, and is none to Avro."""
    if not isinstance(schema, dict) or schema.get("logicalType") not in _DECIMALS:
        return None
    scale, precision = schema.get("scale", 0), schema.get("precision")
    return schema["logicalType"], json.dumps(scale), json.dumps(precision)


def _inner(schema: Any) -> Any:
    """What an array or a map is of."""
    return schema["items"] if schema["type"] == "array" else schema["values"]


def _definition(schema: Any, named: Mapping[str, Any]) -> Any:
    """A type that is called by its name, as itself."""
    return named.get(schema, schema) if isinstance(schema, str) else schema


def kind_of(schema: Any) -> str:
    """A type's kind: `record`, `union`, `long` and so on."""
    if isinstance(schema, list):
        return "union"
    if isinstance(schema, dict):
        return kind_of(schema["type"]) if not isinstance(schema["type"], str) else schema["type"]
    return str(schema)


def is_of_kind(reader: Any, writer: Any) -> bool:
    """Whether a type is read as another, both no unions, as far as their kinds tell."""
    read, written = kind_of(reader), kind_of(writer)
    return read == written or read in _PROMOTED.get(written, set())


def type_text(schema: Any) -> str:
    """A type in a few words."""
    if isinstance(schema, list):
        return " | ".join(type_text(branch) for branch in schema)
    if not isinstance(schema, dict):
        return str(schema)
    kind, logical = schema["type"], schema.get("logicalType")
    if logical in _DECIMALS:
        return f"{logical}({schema.get('precision')},{schema.get('scale', 0)})"
    named = {
        "record": "record {name}",
        "fixed": "fixed {name}",
        "enum": "enum {name}",
        "array": "array of {inner}",
        "map": "map of {inner}",
    }
    if logical or kind not in named:
        return str(logical) if logical else type_text(kind)
    inner = type_text(schema.get("items", schema.get("values", "")))
    symbols = f" ({', '.join(schema['symbols'])})" if kind == "enum" else ""
    return named[kind].format(name=schema.get("name"), inner=inner) + symbols
