"""Comparison of two Avro schemas: where a reader cannot read what a writer wrote. Pure.

Each pair of records is compared once, whatever it is called from: which pairs fit is the greatest
solution of what they ask of each other, so that types within themselves end, and a pair that fails
takes down those that relied on it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mesh_events.schema_size import SchemaTooLargeError, inner_types, require_bounded

_TOP = "the value"
MOST_STEPS = 500_000
"""Pairs of types that one comparison looks at."""
MOST_REASONS = 1000
_PROMOTED = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""What was written -> what else it can be read as."""
_TIMES = {
    **{one: one for one in ("date", "time-millis", "time-micros")},
    **{
        f"{local}timestamp-{unit}": f"timestamp-{unit}"
        for local in ("", "local-")
        for unit in ("millis", "micros", "nanos")
    },
    **{
        f"io.debezium.time.{unit}{what}": f"{what.lower()}-{count}"
        for unit, count in (("", "millis"), ("Micro", "micros"), ("Nano", "nanos"))
        for what in ("Time", "Timestamp")
    },
    "io.debezium.time.Date": "date",
}
"""What numbers count, by Avro's names and by Debezium's -> Avro's."""
OTHER_TIME = ": the same number means another time"
OTHER_NUMBER = ": the same digits mean another number"


_BUILT_IN = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
    | {"record", "error", "enum", "fixed", "array", "map"}
)
_MARKS = {"array": "[]", "map": "{}"}
_Pair = tuple[int, int]
_Reason = tuple[str, str]
_WHOLE: _Pair = (0, 0)
"""The two schemas themselves, which need not be records."""


class Comparison:
    """A reader's and a writer's Avro schema, parsed from JSON.

    Raises SchemaTooLargeError where one of them is too large, or the comparison takes more than
    `MOST_STEPS` steps.
    """

    def __init__(self, reader: Any, writer: Any) -> None:
        require_bounded(reader, "the reader's schema")
        require_bounded(writer, "the writer's schema")
        self._reader, self._writer = reader, writer
        self._read, self._written = named_types(reader), named_types(writer)
        # by the identity of both definitions, which the schemas keep alive
        self._records: dict[_Pair, tuple[Any, Any]] = {}
        self._fits: dict[_Pair, bool] = {_WHOLE: True}
        self._relying: dict[_Pair, set[_Pair]] = {_WHOLE: set()}
        self._waiting: list[_Pair] = [_WHOLE]
        self._steps = 0
        self._solve()

    def reasons(self) -> list[_Reason]:
        """(path, reason) of each place that does not fit, at most `MOST_REASONS`.

        A pair of records is told where it is met first.
        """
        found: list[_Reason] = []
        below: list[tuple[_Pair, str]] = []
        self._report(self._reader, self._writer, "", found, below)
        told: set[_Pair] = set()
        while below and len(found) < MOST_REASONS:
            pair, path = below.pop()
            if pair not in told:
                told.add(pair)
                inner: list[tuple[_Pair, str]] = []
                self._report_record(pair, path, found, inner)
                below.extend(reversed(inner))
        return found[:MOST_REASONS]

    def _solve(self) -> None:
        """Find the pairs that do not fit, and again those that relied on one."""
        while self._waiting:
            pair = self._waiting.pop()
            if self._fits[pair] and not self._pair_fits(pair):
                self._fits[pair] = False
                self._waiting.extend(self._relying[pair])

    def _pair_fits(self, pair: _Pair) -> bool:
        if pair == _WHOLE:
            return self._type_fits(self._reader, self._writer, pair)
        # all of them, also behind one that fails: each is to be known when it is reported
        outcomes = [
            inner is not None and self._type_fits(*inner, pair)
            for _, inner in _field_pairs(*self._records[pair])
        ]
        return all(outcomes)

    def _type_fits(self, reader: Any, writer: Any, user: _Pair) -> bool:
        """Whether a type can be read; `user` is compared anew when that turns out otherwise."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise SchemaTooLargeError(
                f"comparing the schemas takes more than {MOST_STEPS} steps: use fewer types in "
                "their unions"
            )
        reader, writer = self._resolved(reader, writer)
        if isinstance(writer, list):
            outcomes = [self._type_fits(reader, branch, user) for branch in writer]
            return all(outcomes)
        if isinstance(reader, list):
            outcomes = [self._type_fits(branch, writer, user) for branch in reader]
            return any(outcomes)
        kinds = kind_of(reader), kind_of(writer)
        if kinds == ("record", "record") and _is_called_alike(reader, writer):
            return self._relied_on(reader, writer, user)
        if kinds[0] == kinds[1] and kinds[0] in _MARKS:
            return self._type_fits(_inner(reader), _inner(writer), user)
        return next(_plain_reasons(reader, writer, ""), None) is None

    def _relied_on(self, reader: Any, writer: Any, user: _Pair) -> bool:
        """Whether a pair of records fits, as far as is known; a new one is compared later."""
        pair = id(reader), id(writer)
        if pair not in self._fits:
            self._fits[pair], self._records[pair] = True, (reader, writer)
            self._relying[pair] = set()
            self._waiting.append(pair)
        self._relying[pair].add(user)
        return self._fits[pair]

    def _report_record(
        self, pair: _Pair, path: str, found: list[_Reason], below: list[tuple[_Pair, str]]
    ) -> None:
        for name, inner in _field_pairs(*self._records[pair]):
            here = f"{path}.{name}" if path else name
            if inner is None:
                found.append((here, "it was not written and has no default"))
            else:
                self._report(*inner, here, found, below)

    def _report(
        self,
        reader: Any,
        writer: Any,
        path: str,
        found: list[_Reason],
        below: list[tuple[_Pair, str]],
    ) -> None:
        """Append what does not fit to `found`, and pairs of records that do not to `below`."""
        reader, writer = self._resolved(reader, writer)
        kinds = kind_of(reader), kind_of(writer)
        if isinstance(writer, list):
            for branch in writer:
                self._report(reader, branch, path, found, below)
        elif isinstance(reader, list):
            if self._type_fits(reader, writer, _WHOLE):
                return
            # the branch of the same kind tells best what does not fit
            branches = [_definition(branch, self._read) for branch in reader]
            promoted = _PROMOTED.get(kinds[1], set())
            same = [branch for branch in branches if kind_of(branch) == kinds[1]] or [
                branch for branch in branches if kind_of(branch) in promoted
            ]
            if kinds[1] == "record":
                same.sort(key=lambda branch: not _is_called_alike(branch, writer))
            if same:
                self._report(same[0], writer, path, found, below)
            else:
                told = f"{type_text(writer)} was written, which {type_text(reader)} is not"
                found.append((path or _TOP, told))
        elif kinds == ("record", "record") and _is_called_alike(reader, writer):
            pair = id(reader), id(writer)
            if not self._fits[pair]:
                below.append((pair, path))
        elif kinds[0] == kinds[1] and kinds[0] in _MARKS:
            below_path = path + _MARKS[kinds[0]]
            self._report(_inner(reader), _inner(writer), below_path, found, below)
        else:
            found.extend(_plain_reasons(reader, writer, path or _TOP))

    def _resolved(self, reader: Any, writer: Any) -> tuple[Any, Any]:
        return _definition(reader, self._read), _definition(writer, self._written)


def _field_pairs(reader: Any, writer: Any) -> Iterator[tuple[str, tuple[Any, Any] | None]]:
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
    kinds = kind_of(reader), kind_of(writer)
    if kinds[0] != kinds[1]:
        if kinds[0] not in _PROMOTED.get(kinds[1], set()):
            yield here, f"{type_text(writer)} was written, {type_text(reader)} is read"
        elif _decimal(reader) or _decimal(writer):
            # the digits of a text are no decimal's, nor the other way round
            yield here, _other_number(reader, writer)
        else:
            yield from _time_reasons(reader, writer, here)
        return
    match kinds[0]:
        case "record":
            yield here, f"the record {writer['name']} was written, {reader['name']} is read"
            return
        case "enum":
            known = set(reader["symbols"])
            lost = [one for one in writer["symbols"] if one not in known]
            if lost and "default" not in reader:
                yield here, f"the symbols {', '.join(lost)} are missing and there is no default"
        case "fixed" if reader["size"] != writer["size"]:
            yield here, f"{writer['size']} bytes were written, {reader['size']} are read"
    read, written = _decimal(reader), _decimal(writer)
    if read != written:
        same_scale = read and written and read[1] == written[1]
        why = _other_number(reader, writer)
        yield here, why.removesuffix(OTHER_NUMBER) if same_scale else why
    yield from _time_reasons(reader, writer, here)


def _other_number(reader: Any, writer: Any) -> str:
    return f"{type_text(writer)} was written, {type_text(reader)} is read{OTHER_NUMBER}"


def _time_reasons(reader: Any, writer: Any, here: str) -> Iterator[_Reason]:
    """Both sides are numbers that tell a time; one that does not say so may mean the same."""
    read, written = _time(reader), _time(writer)
    if read and written and read != written:
        yield here, f"{written} was written, {read} is read{OTHER_TIME}"


def _time(schema: Any) -> str | None:
    """What a number counts, by Avro's name."""
    if not isinstance(schema, dict):
        return None
    told = (schema.get(one) for one in ("connect.name", "logicalType"))
    return next((_TIMES[one] for one in told if isinstance(one, str) and one in _TIMES), None)


def _is_called_alike(reader: Any, writer: Any) -> bool:
    """Whether a reader's record has the name of the writer's, or had it."""
    names = (reader["name"], *reader.get("aliases", ()))
    return writer["name"].rpartition(".")[2] in {one.rpartition(".")[2] for one in names}


def _decimal(schema: Any) -> tuple[Any, Any] | None:
    if not isinstance(schema, dict) or schema.get("logicalType") != "decimal":
        return None
    return schema.get("precision"), schema.get("scale", 0)


def _inner(schema: Any) -> Any:
    """What an array or a map is of."""
    return schema["items"] if schema["type"] == "array" else schema["values"]


def _definition(schema: Any, named: Mapping[str, Any]) -> Any:
    """A type that is called by its name, or stands in braces within braces, as itself."""
    while True:
        if isinstance(schema, str):
            return schema if schema in _BUILT_IN else named.get(schema, schema)
        kind = schema.get("type") if isinstance(schema, dict) else None
        if kind is None or (isinstance(kind, str) and (kind in _BUILT_IN or kind not in named)):
            return schema
        if isinstance(kind, dict) and "name" not in kind:
            # what stands beside a type tells what is meant by it
            schema = {**kind, **{key: schema[key] for key in schema if key != "type"}}
        else:
            schema = kind


def kind_of(schema: Any) -> str:
    """A type's kind: `record`, `union`, `long` and so on."""
    if isinstance(schema, list):
        return "union"
    if isinstance(schema, dict):
        return kind_of(schema["type"]) if not isinstance(schema["type"], str) else schema["type"]
    return str(schema)


def named_types(schema: Any, namespace: str = "") -> dict[str, Any]:
    """The named types in an Avro schema, by short and by full name; the last of a name counts.

    namespace: the one around the schema.
    """
    found: dict[str, Any] = {}
    left = [(schema, namespace)]
    while left:
        one, space = left.pop()
        if isinstance(one, dict) and one.get("type") in ("record", "enum", "fixed"):
            prefix, _, short = str(one["name"]).rpartition(".")
            space = prefix or one.get("namespace") or space
            found |= {short: one, f"{space}.{short}": one}
        left.extend((inner, space) for inner in reversed(list(inner_types(one))))
    return found


def type_text(schema: Any) -> str:
    """A type in a few words."""
    if isinstance(schema, list):
        return " | ".join(type_text(branch) for branch in schema)
    if not isinstance(schema, dict):
        return str(schema)
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal":
        return f"decimal({schema.get('precision')},{schema.get('scale', 0)})"
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
