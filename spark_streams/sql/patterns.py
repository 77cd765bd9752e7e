"""Regular expressions in a statement's text: each stands in the text, and is matched by RE2.

Spark's own functions match by Java's regular expressions, which take exponential time for some
patterns, and stop the domain's server. So functions of the mesh take their place (`jvm`), and what
remains of Java's gets a pattern that is plain. What is read here is pure; the rest makes columns.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from mesh_events.linear_patterns import PatternError, linear_pattern
from spark_streams.sql.tree import Call, Like, Node, Text

MATCHED = frozenset(
    {"regexp_count", "regexp_extract", "regexp_extract_all", "regexp_instr", "regexp_like"}
    | {"regexp_replace", "regexp_substr", "split"}
)
"""Functions whose second argument is a regular expression."""
_PLAIN: Mapping[str, tuple[int, re.Pattern[str], str]] = {
    # the key becomes a part of a regular expression
    "parse_url": (2, re.compile(r"[A-Za-z0-9_-]{1,100}"), "letters, digits, _ and -"),
    "str_to_map": (
        1,
        re.compile(r"(?:[^\\\[\](){}.*+?^$|]|\\[^A-Za-z0-9]){1,100}"),
        "characters that mean themselves; before . and the like stands a backslash",
    ),
}
"""Function -> (first argument that Spark reads as a regular expression, what it may be)."""
_LAST = {"regexp_extract": 1, "regexp_extract_all": 1, "split": -1}
"""Function -> its last argument where it is left out."""
_LONGEST_LIKE = 1_000
_PERCENT = "%"


def require_linear(node: Node, refuse: Callable[[str, Node], Exception]) -> None:
    """Raise what `refuse` makes of the first pattern that is not in the text, or not matched."""
    for one in node.walk():
        if isinstance(one, Like):
            _require_like(one, refuse)
        elif isinstance(one, Call) and one.name in MATCHED:
            _require_pattern(one.name, one.args[1], refuse)
        elif isinstance(one, Call) and one.name in _PLAIN:
            first, plain, words = _PLAIN[one.name]
            for given in one.args[first:]:
                if not isinstance(given, Text) or plain.fullmatch(given.value) is None:
                    raise refuse(f"{one.name}: this argument stands in the text, as {words}", given)


def _require_like(node: Like, refuse: Callable[[str, Node], Exception]) -> None:
    if node.kind == "rlike":
        _require_pattern("RLIKE", node.pattern, refuse)
        return
    name = node.kind.upper()
    if not isinstance(node.pattern, Text):
        raise refuse(f"{name}: the pattern has to stand in the text", node.pattern)
    if len(node.pattern.value) > _LONGEST_LIKE:
        raise refuse(f"{name}: a pattern has at most {_LONGEST_LIKE} characters", node.pattern)
    try:
        parts = _like_parts(node.pattern.value, node.escape)
        if not _is_simple(parts):
            linear_pattern(_like_pattern(parts))
    except ValueError as error:
        raise refuse(f"{name}: the pattern is not supported: {error}", node.pattern) from error


def _require_pattern(name: str, pattern: Node, refuse: Callable[[str, Node], Exception]) -> None:
    if not isinstance(pattern, Text):
        raise refuse(f"{name}: the pattern has to stand in the text", pattern)
    try:
        linear_pattern(pattern.value)
    except PatternError as error:
        raise refuse(f"{name}: the pattern is not supported: {error}", pattern) from error


def called(node: Call, columns: list[Any], call: Callable[..., Any]) -> Any:
    """The column of a function in `MATCHED`.

    Args:
        node: the call.
        columns: its arguments.
        call: calls a function of the session by its name.
    """
    pattern = node.args[1]
    if node.name == "split" and isinstance(pattern, Text) and not pattern.value:
        return call("split", *columns)
    this, *given = columns
    if node.name == "regexp_substr":
        found = call("mesh_regexp_extract", _string(this, call), *given, _lit(0))
        return call("nullif", found, _lit(""))
    if len(given) == 1 and node.name in _LAST:
        given.append(_lit(_LAST[node.name]))
    if node.name == "regexp_replace":
        given[1] = _string(given[1], call)
    return call(f"mesh_{node.name}", _string(this, call), *given)


def like(node: Like, this: Any, pattern: Any, call: Callable[..., Any]) -> Any:
    """The column of LIKE, ILIKE or RLIKE; see `called`."""
    if node.kind == "rlike":
        return call("mesh_regexp_like", _string(this, call), pattern)
    assert isinstance(node.pattern, Text)  # noqa: S101 - see `require_linear`
    more = () if node.escape is None else (_lit(node.escape),)
    parts = _like_parts(node.pattern.value, node.escape)
    if _is_simple(parts):
        return call(node.kind, this, pattern, *more)
    text = _string(this, call)
    if node.kind == "ilike":
        text, parts = call("lower", text), [one and one.lower() for one in parts]
    return call("mesh_regexp_like", text, _lit(_like_pattern(parts)))


def _string(column: Any, call: Callable[..., Any]) -> Any:
    """The column as a string, or Spark's refusal where its own functions would refuse it, too."""
    return call("repeat", column, _lit(1))


def _lit(value: Any) -> Any:
    from pyspark.sql.connect import functions as f

    return f.lit(value)


_Parts = list[str | None]
"""Characters of a pattern of LIKE that mean themselves, "" for `_`, and None for `%`."""


def _like_parts(pattern: str, escape: str | None) -> _Parts:
    """The parts of a pattern; raises ValueError where Spark would refuse it."""
    escape = "\\" if escape is None else escape
    found: _Parts = []
    characters = iter(pattern)
    for one in characters:
        if one == escape:
            escaped = next(characters, "")
            if escaped not in ("_", _PERCENT, escape):
                raise ValueError(f"{escape} stands before _, % or itself")
            found.append(escaped)
        elif one == _PERCENT:
            # several in a row are one
            found += [None] if not found or found[-1] is not None else []
        else:
            found.append("" if one == "_" else one)
    return found


def _is_simple(parts: _Parts) -> bool:
    """Whether Java's expression goes back over the string once at most."""
    inner = parts[1:-1] if parts[:1] == [None] and parts[-1:] == [None] else parts
    return inner.count(None) <= (1 if inner is parts else 0)


def _like_pattern(parts: _Parts) -> str:
    words = (".*" if one is None else re.escape(one) or "." for one in parts)
    return rf"(?s)\A{''.join(words)}\z"
