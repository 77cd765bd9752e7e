"""Strings that have to match a pattern: the logical type `validatedString` of an Avro schema.

    {"type": "string", "logicalType": "validatedString", "pattern": "[+0-9 -]{4,20}"}

Avro itself passes over a logical type that it does not know, so a writer can write anything. The
pattern is a regular expression in the syntax of RE2 (see `linear_patterns`), for the whole of the
string, which may also stand in a nested record, an array or a map. In a union of several types, as
`["null", "int", ...]`, it is refused: Spark reads such a union as a record of its own making.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from mesh_events.errors import RefusedError
from mesh_events.schema.full_names import named_types, with_full_names
from mesh_events.schema.linear_patterns import LinearPattern, PatternError, linear_pattern
from mesh_events.schema.size import (
    MOST_LEVELS,
    SchemaTooLargeError,
    inner_types,
    parsed,
    require_bounded,
    require_expandable,
)
from mesh_events.schema.times import require_one_default, require_one_meaning

UNSUPPORTED = "unsupported_pattern"
MOST_PLACES = 1000
"""Strings with a pattern in one schema, counted wherever their types are used."""
_MOST_STEPS = 200_000
_SHOWN = 100
"""Characters of a pattern in an error."""
_FEWER = "use a type by its name in fewer places"


class Each(Enum):
    """A step to all values at once: of an array, or of a map."""

    ITEM = "item"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a record a string has to match, and what.

    steps: names of fields, and `Each`, from the record to the string
    is_sure: whether there is no union of several types on the way
    """

    steps: tuple[str | Each, ...]
    pattern: Any
    is_sure: bool = True

    @property
    def path(self) -> str:
        """As people write it: `home.code`, `others[]`; "the value" for a string alone."""
        text = "".join("[]" if isinstance(one, Each) else f".{one}" for one in self.steps)
        return text.lstrip(".") or "the value"

    def below(self, step: str | Each) -> "Place":
        """The same place, seen from one step above."""
        return replace(self, steps=(step, *self.steps))


def places(schema: Any) -> Iterator[Place]:
    """Every string of an Avro schema, parsed from JSON, that has to match.

    A type that is called by its name counts where it is called, but not within itself. Raises
    SchemaTooLargeError for more than `MOST_PLACES`.
    """
    schema = with_full_names(schema)
    named = named_types(schema)
    search = _Search(named, _leading_to_patterns(schema, named))
    for number, place in enumerate(search.places(schema, ())):
        if number == MOST_PLACES:
            raise SchemaTooLargeError(f"{MOST_PLACES} strings with a pattern: {_FEWER}")
        yield place


@dataclass(slots=True)
class _Search:
    """Looks for strings with a pattern; `leading` are the types that one can be below."""

    named: Mapping[str, Any]
    leading: set[int]
    steps: int = 0

    def places(self, schema: Any, around: tuple[int, ...]) -> Iterator[Place]:
        """`around`: the records that this one is in, by their identity."""
        self.steps += 1
        if self.steps > _MOST_STEPS or len(around) > MOST_LEVELS:
            raise SchemaTooLargeError(f"types that use each other too often: {_FEWER}")
        if isinstance(schema, str):
            schema = self.named.get(schema, schema)
            if id(schema) in around:
                return
        if id(schema) in self.leading:
            yield from self._leading(schema, around)

    def _leading(self, schema: Any, around: tuple[int, ...]) -> Iterator[Place]:
        match schema:
            case list():
                is_sure = sum(one != "null" for one in schema) == 1
                branches = (one for branch in schema for one in self.places(branch, around))
                yield from (replace(one, is_sure=one.is_sure and is_sure) for one in branches)
            case {"type": "record", "fields": fields}:
                for field in fields:
                    found = self.places(field["type"], (*around, id(schema)))
                    yield from (one.below(field["name"]) for one in found)
            case {"type": "array", "items": inner}:
                yield from (one.below(Each.ITEM) for one in self.places(inner, around))
            case {"type": "map", "values": inner}:
                yield from (one.below(Each.VALUE) for one in self.places(inner, around))
            case {"type": "string", "logicalType": "validatedString"}:
                yield Place((), schema.get("pattern"))


def _leading_to_patterns(schema: Any, named: Mapping[str, Any]) -> set[int]:
    """The types, by identity, that a string with a pattern stands in, at any depth."""
    above: dict[int, list[int]] = {}
    leading: set[int] = set()
    left, seen = [schema], {id(schema)}
    while left:
        one = left.pop()
        if isinstance(one, dict) and one.get("logicalType") == "validatedString":
            leading.add(id(one))
        for written in inner_types(one):
            inner = named.get(written, written) if isinstance(written, str) else written
            above.setdefault(id(inner), []).append(id(one))
            if id(inner) not in seen:
                seen.add(id(inner))
                left.append(inner)
    todo = list(leading)
    while todo:
        new = set(above.get(todo.pop(), ())) - leading
        leading |= new
        todo.extend(new)
    return leading


def require_usable(text: str, subject: str) -> None:
    """Raise RefusedError where a schema is too large, or has a pattern that is not matched.

    Also where it tells two times for one number, see `times`.

    Args:
        text: a whole Avro schema.
        subject: what an error names.
    """
    schema = parsed(text, subject)
    require_patterns(schema, subject)
    require_one_meaning(schema, subject)
    require_one_default(schema, subject)


def require_patterns(schema: Any, subject: str) -> None:
    """Raise RefusedError `unsupported_pattern` for a pattern that is not matched, see `matcher`.

    Also for one in a union of several types.

    Raises SchemaTooLargeError for a schema that is too large to look through.
    """
    require_bounded(schema, subject)
    require_expandable(schema, subject)
    for place in _within(subject, places(schema)):
        _matcher_of(place, f"{subject}: the pattern of {place.path}")


def _matcher_of(place: Place, name: str) -> LinearPattern:
    """As `matcher`, where the place is sure."""
    found = matcher(place.pattern, name)
    if not place.is_sure:
        raise RefusedError(
            UNSUPPORTED,
            f"{name} stands in a union of several types, where it is not matched: leave one type "
            'beside "null" in the union, or the pattern out',
        )
    return found


def matcher(pattern: Any, name: str) -> LinearPattern:
    """The pattern, ready for use.

    Args:
        pattern: as it stands in a schema or a text.
        name: what an error names.

    Raises:
        RefusedError: `unsupported_pattern`, with the reason and the next step.
    """
    try:
        return linear_pattern(pattern)
    except PatternError as error:
        shown = repr(pattern)
        cut = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
        raise RefusedError(UNSUPPORTED, f"{name}, {cut}, is not supported: {error}") from error


def _within(subject: str, found: Iterator[Place]) -> Iterator[Place]:
    """The places; an error names the subject."""
    try:
        yield from found
    except SchemaTooLargeError as error:
        raise SchemaTooLargeError(f"{subject}: the schema has {error}") from error


def misfits(value: Any, found: Sequence[Place]) -> Iterator[tuple[Place, str]]:
    """(place, string) for every string of a value that does not match there.

    Args:
        value: in Python's types, as its schema has it.
        found: `places` of its schema.

    Raises:
        RefusedError: `unsupported_pattern`, see `require_patterns`.
    """
    for place in found:
        pattern = _matcher_of(place, f"the pattern of {place.path}")
        yield from (
            (place, one) for one in _strings(value, place.steps) if not pattern.matches(one)
        )


def _strings(value: Any, steps: Sequence[str | Each]) -> Iterator[str]:
    if not steps:
        if isinstance(value, str):
            yield value
        return
    for one in _inside(value, steps[0]):
        yield from _strings(one, steps[1:])


def _inside(value: Any, step: str | Each) -> Sequence[Any]:
    """What one step leads to; nothing where the value is null, or left to a default."""
    match step:
        case Each.ITEM:
            return value if isinstance(value, list | tuple) else ()
        case Each.VALUE:
            return tuple(value.values()) if isinstance(value, Mapping) else ()
        case _:
            return (value.get(step),) if isinstance(value, Mapping) else ()
