"""Regular expressions in a statement's text: each stands in the text, and is matched by RE2.

Spark's own functions match by Java's regular expressions, which take exponential time for some
patterns, and stop the domain's server. So functions of the mesh take their place (`jvm`), with a
pattern that gives the same values (`regex`), and what remains of Java's gets a plain pattern. What
is read here is pure; the rest makes columns.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from unicodedata import category

from mesh_events.schema.linear_patterns import LinearPattern, linear_pattern
from spark_streams.sql.regex import (
    RegexError,
    Use,
    Written,
    has_line_end,
    parse,
    replacement,
    rewrite,
)
from spark_streams.sql.text.tree import Call, Form, Like, Node, Number, Text

_A = TypeVar("_A")
_Parts = list[str | None]
"""Characters of a pattern of LIKE that mean themselves, "" for `_`, and None for `%`."""
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
_USES: Mapping[str, Use] = {
    "regexp_like": Use.PLACE,
    "regexp_instr": Use.PLACE,
    "regexp_substr": Use.GROUP,
    "regexp_extract": Use.GROUP,
    "regexp_extract_all": Use.GROUPS,
    "regexp_count": Use.COUNT,
    "regexp_replace": Use.REPLACE,
    "split": Use.SPLIT,
}
MATCHED = frozenset(_USES)
"""Functions whose second argument is a regular expression."""
_GROUPED = {
    "regexp_substr": "regexp_extract",
    "regexp_extract": "regexp_extract",
    "regexp_extract_all": "regexp_extract_all",
}
"""Function that reads a group -> the function of the mesh, without `mesh_`."""
_LONGEST_LIKE = 1_000
_LONGEST_WRITTEN = 200_000
"""Characters and instructions of a pattern that was written anew; `parse` bounds what is read."""
_LAST_OF_BMP = "\uffff"
_CASES_BY_PLACE = frozenset("\u03a3\u0130")
"""Characters whose lower case depends on what stands beside them, or is two characters."""
_PERCENT = "%"


def require_linear(node: Node, refuse: Callable[[str, Node], Exception]) -> None:
    """Raise what `refuse` makes of the first pattern that is not in the text, or not matched."""
    for one in node.walk():
        if isinstance(one, Like):
            _require_like(one, refuse)
        elif isinstance(one, Call) and one.name in MATCHED:
            _require_pattern(one, refuse)
        elif isinstance(one, Call) and one.name in _PLAIN:
            first, plain, words = _PLAIN[one.name]
            for given in one.args[first:]:
                if not isinstance(given, Text) or plain.fullmatch(given.value) is None:
                    raise refuse(f"{one.name}: this argument stands in the text, as {words}", given)


def _require_like(node: Like, refuse: Callable[[str, Node], Exception]) -> None:
    if node.kind == "rlike":
        _require(lambda: _written(node), "RLIKE", node.pattern, refuse)
        return
    name = node.kind.upper()
    if not isinstance(node.pattern, Text):
        raise refuse(f"{name}: the pattern has to stand in the text", node.pattern)
    if len(node.pattern.value) > _LONGEST_LIKE:
        raise refuse(f"{name}: a pattern has at most {_LONGEST_LIKE} characters", node.pattern)
    try:
        parts = _like_parts(node.pattern.value, node.escape)
        if not _is_simple(parts):
            _require_alike(parts, ignores_case=node.kind == "ilike")
            linear_pattern(_like_pattern(parts))
    except ValueError as error:
        raise refuse(f"{name}: the pattern is not supported: {error}", node.pattern) from error


def _require_alike(parts: _Parts, *, ignores_case: bool) -> None:
    """Raise ValueError for a character that Java's own expression may read differently."""
    for one in filter(None, parts):
        if one > _LAST_OF_BMP:
            raise ValueError(f"{one} is beyond U+FFFF: write one % at most, or one at each end")
        if ignores_case and (one in _CASES_BY_PLACE or category(one) == "Cn"):
            raise ValueError(f"{one} has no one lower case: write one % at most, or lower(...)")


def _require_pattern(node: Call, refuse: Callable[[str, Node], Exception]) -> None:
    if node.name == "split" and isinstance(node.args[1], Text) and not node.args[1].value:
        return
    found = _require(lambda: _written(node), node.name, node.args[1], refuse)
    if node.name in _GROUPED and _group(node) not in {None, *found.numbers}:
        groups = len(found.numbers) - 1
        raise refuse(
            f"{node.name}: the pattern has no group {_group(node)}: "
            + (f"it has {groups}, and 0 is the whole match" if groups else "0 is the whole match"),
            node.args[-1],
        )
    if node.name != "regexp_replace":
        return
    by = node.args[2]
    if isinstance(by, Text):
        _require(lambda: _replacement(by.value, found), node.name, by, refuse, "replacement")
    elif found.kept:
        raise refuse(f"{node.name}: behind a pattern with $ the replacement stands in the text", by)


def _require(
    made: Callable[[], _A],
    name: str,
    node: Node,
    refuse: Callable[[str, Node], Exception],
    what: str = "pattern",
) -> _A:
    if not isinstance(node, Text):
        raise refuse(f"{name}: the {what} has to stand in the text", node)
    try:
        return made()
    except ValueError as error:
        raise refuse(f"{name}: the {what} is not supported: {error}", node) from error


def _written(node: Call | Like) -> Written:
    """The pattern for RE2; raises ValueError for what is not known to give Spark's value."""
    pattern = node.pattern if isinstance(node, Like) else node.args[1]
    assert isinstance(pattern, Text)  # noqa: S101 - see `require_linear`
    if isinstance(node, Like):
        return _compiled(rewrite(parse(pattern.value), Use.PLACE))
    group = _group(node)
    regex = parse(pattern.value)
    if group is None and node.name in _GROUPED and has_line_end(regex.alternatives):
        raise RegexError("with $ the number of the group has to stand in the text")
    found = rewrite(regex, _USES[node.name], 1 if group is None else group)
    return _compiled(found)


def _compiled(found: Written) -> Written:
    """What was written, if RE2 takes it; raises ValueError where it does not."""
    LinearPattern(found.pattern, longest=_LONGEST_WRITTEN, most=_LONGEST_WRITTEN)
    return found


def _group(node: Call) -> int | None:
    """The number of the group that is read, None where the text does not tell."""
    if node.name == "regexp_substr":
        return 0
    if len(node.args) < 3:
        return 1
    given = node.args[2]
    is_whole = isinstance(given, Number) and given.form is Form.INTEGER
    return int(given.digits) if is_whole and isinstance(given, Number) else None


def _replacement(text: str, found: Written) -> str:
    """The replacement for RE2, which puts back what is no part of a match."""
    made, named = replacement(text, len(found.numbers) - 1, found.numbers)
    if found.kept and 0 in named:
        raise RegexError("$0 with a pattern that has $: write a group around what is meant")
    return made + "".join(f"${one}" for one in found.kept)


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
    found = _written(node)
    text = _string(columns[0], call)
    given = [_lit(found.pattern), *columns[2:]]
    if node.name in _GROUPED:
        group = _group(node)
        number = (
            _whole(columns[2], call) if group is None else _lit(found.numbers.get(group, group))
        )
        made = call(f"mesh_{_GROUPED[node.name]}", text, given[0], number)
        return call("nullif", made, _lit("")) if node.name == "regexp_substr" else made
    if node.name == "split":
        given[1:] = [_whole(columns[2], call)] if len(columns) > 2 else [_lit(-1)]
    if node.name == "regexp_replace":
        by = node.args[2]
        replaced = _lit(_replacement(by.value, found)) if isinstance(by, Text) else given[1]
        given[1] = _string(replaced, call)
    return call(f"mesh_{node.name}", text, *given)


def like(node: Like, this: Any, pattern: Any, call: Callable[..., Any]) -> Any:
    """The column of LIKE, ILIKE or RLIKE; see `called`."""
    if node.kind == "rlike":
        return call("mesh_regexp_like", _string(this, call), _lit(_written(node).pattern))
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


def _whole(column: Any, call: Callable[..., Any]) -> Any:
    """The column as an INT, or Spark's refusal where its own functions would refuse it, too."""
    return call("unix_date", call("date_from_unix_date", column))


def _lit(value: Any) -> Any:
    from pyspark.sql.connect import functions as f

    return f.lit(value)


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
