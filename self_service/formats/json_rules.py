"""The rules of JSON Schema as they are checked here: by RE2, and with bounded work.

`jsonschema` matches patterns by `re`, compares all values of an array with each other, and follows
references as often as they are met: each takes exponential or quadratic time for some schema. Every
use of a keyword counts here, and checking a value ends after `MOST_STEPS`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError

from mesh_events.schema.linear_patterns import linear_pattern
from self_service.formats.json_numbers import Number

MOST_STEPS = 200_000
"""Uses of keywords and their parts for one value; some seconds."""

_LONGEST = 200
"""Characters of a reason; jsonschema's own may hold the whole value."""


MOST_NESTED = 150
"""Keywords that are used within each other."""


class TooManyStepsError(ValueError):
    """Checking a value takes more than `MOST_STEPS`, or nests more than `MOST_NESTED` deep."""


class Steps:
    """The steps of checking one value."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin with another value."""
        self._taken = self._nested = 0

    @contextmanager
    def within(self) -> Iterator[None]:
        """Count one level more; raises TooManyStepsError."""
        self._nested += 1
        try:
            if self._nested > MOST_NESTED:
                raise TooManyStepsError(f"its schema uses more than {MOST_NESTED} levels of rules")
            yield
        finally:
            self._nested -= 1

    def take(self, count: int) -> None:
        """Count some more; raises TooManyStepsError."""
        self._taken += count
        if self._taken > MOST_STEPS:
            raise TooManyStepsError(f"checking it by its schema takes more than {MOST_STEPS} steps")


_Rule = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


def bounded(kind: Any, steps: Steps) -> Any:
    """The validator's class with rules that count their steps, and match by RE2.

    Args:
        kind: a class of `jsonschema`, of one draft.
        steps: to be restarted for each value.
    """
    rules = {**kind.VALIDATORS, **{one: _OWN[one] for one in _OWN if one in kind.VALIDATORS}}
    extend: Callable[..., Any] = jsonschema.validators.extend
    return extend(kind, {keyword: _counted(rule, steps) for keyword, rule in rules.items()})


def _counted(rule: _Rule, steps: Steps) -> _Rule:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        steps.take(1 + _size(value) + _size(instance))
        with steps.within():
            for error in rule(validator, value, instance, schema) or ():
                # it may hold the whole value, once for each branch of a schema
                steps.take(len(error.message) // 100)
                error.message = short(error.message)
                yield error

    return counted


def short(text: str) -> str:
    """Both ends: the value stands in front, and what is wrong with it behind."""
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} ... {text[-half:]}"


def _size(value: Any) -> int:
    """The parts that a rule may look at, as strings by the thousand characters."""
    if isinstance(value, str):
        return len(value) // 1000
    return len(value) if isinstance(value, dict | list) else 0


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not linear_pattern(pattern).is_in(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, schema in patterns.items():
            for key, value in instance.items():
                if linear_pattern(pattern).is_in(key):
                    yield from validator.descend(value, schema, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, rest: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known = schema.get("properties", {})
    patterns = [linear_pattern(one) for one in schema.get("patternProperties", {})]
    extras = [
        key for key in instance if key not in known and not any(one.is_in(key) for one in patterns)
    ]
    if isinstance(rest, dict):
        for key in extras:
            yield from validator.descend(instance[key], rest, path=key)
    elif not rest and extras:
        names = ", ".join(map(repr, sorted(extras)))
        yield ValidationError(f"Additional properties are not allowed: {names}")


def _unique_items(_: Any, wanted: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list):
        texts = {json.dumps(_plain(one), sort_keys=True) for one in instance}
        if len(texts) < len(instance):
            yield ValidationError(f"{instance!r} has non-unique elements")


def _plain(value: Any) -> Any:
    """A value whose JSON is that of all values that are equal to it: 1.0 is 1."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, Number):
        try:
            return int(value)
        except ValueError:
            # an object, since different numbers may be one double
            return {"": value.exact()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


_OWN: Mapping[str, _Rule] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
