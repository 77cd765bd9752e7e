"""RE2 finds of a rewritten pattern what an engine that looks ahead finds of the original."""

import re
from typing import Any

import pytest
import re2
from hypothesis import given, settings

from spark_streams.sql.regex import RegexError, Use, Written, parse, rewrite
from tests.regex_cases import COMMON, PATTERNS, STRINGS, TEXTS
from tests.unit.spark_streams.sql.regex.lookahead import model


def compared(pattern: str, texts: list[str]) -> int:
    """How many uses of a pattern are allowed; each of them finds the same in all texts."""
    try:
        regex = parse(pattern)
    except RegexError:
        return 0
    expected = model(regex)
    count = 0
    for use in Use:
        for group in range(regex.groups + 1) if use in (Use.GROUP, Use.GROUPS) else (0,):
            try:
                written = rewrite(regex, use, group)
            except RegexError:
                continue
            count += 1
            made = re2.compile(written.pattern)
            for text in texts:
                found = ours(made, written, use, group, text)
                assert found == theirs(expected, use, group, text), (pattern, use, group, text)
    return count


def theirs(made: re.Pattern[str], use: Use, group: int, text: str) -> Any:
    match use:
        case Use.PLACE:
            found = made.search(text)
            return found and found.start()
        case Use.GROUP:
            found = made.search(text)
            return found and (found[group] or "")
        case Use.GROUPS:
            return [one[group] or "" for one in made.finditer(text)]
        case Use.COUNT:
            return len(list(made.finditer(text)))
        case Use.REPLACE:
            return made.sub("<>", text)
    return [one.span() for one in made.finditer(text)]


def ours(made: Any, written: Written, use: Use, group: int, text: str) -> Any:
    """As the functions in `Patterns.scala` read a match."""
    number = written.numbers.get(group, group)
    match use:
        case Use.PLACE:
            found = made.search(text)
            return found and found.start()
        case Use.GROUP:
            found = made.search(text)
            return found and (found[number] or "")
        case Use.GROUPS:
            return [one[number] or "" for one in made.finditer(text)]
        case Use.COUNT:
            return len(list(made.finditer(text)))
        case Use.REPLACE:
            parts, start = [], 0
            for one in made.finditer(text):
                kept = "".join(one[group] or "" for group in written.kept)
                parts += [text[start : one.start()], "<>", kept]
                start = one.end()
            return "".join([*parts, text[start:]])
    return [one.span() for one in made.finditer(text)]


@pytest.mark.parametrize("pattern", COMMON)
def test_a_common_pattern_is_allowed_and_finds_the_same(pattern: str) -> None:
    assert compared(pattern, STRINGS) > 0


@settings(max_examples=300, deadline=None)
@given(PATTERNS, TEXTS)
def test_a_random_pattern_that_is_allowed_finds_the_same(pattern: str, text: str) -> None:
    compared(pattern, [text, f"{text}\n", f"{text}\r\n", f"{text}\u2028"])


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a$", "a\n", True),
        ("a$", "a\r\n", True),
        ("a$", "a\n\n", False),
        ("a.b", "a\rb", False),
        ("a.b", "a\u2028b", False),
        ("(?s)a.b", "a\u2028b", True),
        (r"^\s\z", "\v", True),
        (r"^[\s]+$", "\v", True),
        ("^$", "\r\n", True),
        (r"a\z", "a\n", False),
        ("(?i)k", "\u212a", False),
        (r"(?i)^[^k]\z", "\u212a", True),
        ("(?i)\u00e4", "\u00c4", False),
        (r"\d", "\u0663", False),
        (r"\w", "\u00e4", False),
        (r"^[^\s]\z", "\u00a0", True),
    ],
)
def test_a_text_is_matched_as_java_matches_it(pattern: str, text: str, *, found: bool) -> None:
    written = rewrite(parse(pattern), Use.PLACE)
    assert (re2.search(written.pattern, text) is not None) is found


def test_a_group_has_the_number_that_it_has_in_the_text() -> None:
    assert rewrite(parse("(a)(b)$"), Use.GROUP, 0).numbers == {0: 1, 1: 2, 2: 3}
    assert rewrite(parse("(a)(b)$"), Use.GROUP, 1).numbers == {0: 0, 1: 1, 2: 2}
    assert rewrite(parse("(a)$|(b)$"), Use.REPLACE) == Written(
        r"(a)((?:\r\n|[\x{a}\x{d}\x{85}\x{2028}-\x{2029}])?)\z"
        r"|(b)((?:\r\n|[\x{a}\x{d}\x{85}\x{2028}-\x{2029}])?)\z",
        {0: 0, 1: 1, 2: 3},
        (2, 4),
    )
