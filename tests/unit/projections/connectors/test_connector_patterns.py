"""Patterns of connectors: what is accepted, and that its search ends soon in Java."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projections.connectors.patterns import (
    LONGEST_END,
    LONGEST_PATTERN,
    MOST_GROUPS,
    groups,
    is_linear,
    matches,
    missing_groups,
    repeats_group,
    replaced,
)

ACCEPTED = [
    *(r"east\.shop\.[^.]+\.(.+)", r"east\.shop\.(.+)", ".*", "(.*)", ".*users", "^a(.*)$"),
    *(r"east\.(users|orders)", r"([^.]+)\.([^.]+)\.([^.]+)", r"\w+-\d+x", "[a-z0-9_-]+"),
    *(r"([^.]*)\.(.*)", "ab?c", "(public|sales)", "[a-z][a-z]", "(users|orders)"),
    *(r"east[.]([^.]*)[.](.*)_(v1|v2)", r"a\$", "a" * LONGEST_PATTERN, "(a)" * MOST_GROUPS),
]
REFUSED = [
    *("(a|a)" * 60 + "b", "(a|ab)c", "(a+)+b", "(a|b)*c", "(a*|b)c", "((a))", "(?:a)", "(?=a)b"),
    *("a*a*b", "a?" * 30 + "a" * 30, "a?b?c", ".*x.*", "(.*)a(.*)", "[a-z]*[x-z]b?", r"(a)\1"),
    *(r"(.*)\.(.*)", "(public|sales)+", "[a-z]{2}", "(?:users|orders)"),
    *("a{2}", "a*?", "a*+", "", "(a", "a)", "(a|)", "a|b", "[z-a]", "[]", "[a&&b]", r"\p{L}", "é"),
    *("a" * (LONGEST_PATTERN + 1), "(a)" * (MOST_GROUPS + 1), ".*" + "a" * (LONGEST_END + 1)),
]
ATOMS = st.sampled_from(["a", "b", r"\.", ".", "[ab]", "[^.]", r"\w", r"\d", "[a-c-]", "-", "c"])
PARTS = st.one_of(
    ATOMS,
    ATOMS,
    st.builds("{}{}".format, ATOMS, st.sampled_from("*+?")),
    st.builds("({}{})".format, ATOMS, st.sampled_from(["", "+", "*", "b"])),
    st.lists(st.text("abc", min_size=1, max_size=3), min_size=2, max_size=5).map(
        lambda words: f"({'|'.join(words)})"
    ),
)
PATTERNS = st.lists(PARTS, min_size=1, max_size=60).map("".join).filter(is_linear)
TEXTS = st.one_of(
    st.text("ab.-c", max_size=249),
    st.builds(lambda text, times, end: (text * times)[:248] + end, st.text("ab.c", min_size=1,
              max_size=4), st.integers(1, 249), st.sampled_from("abx.")),
)  # fmt: skip
TOKEN = re.compile(r"\(([^()]+\|[^()]+)\)|[()^$]|(\\.|\[[^]]+\]|[^\\])([*+?]?)")


def steps(pattern: str, text: str, most: int) -> tuple[bool, int]:
    """Whether a matcher that goes back matches a whole text, and its steps; it stops at `most`."""
    parts = [found for found in TOKEN.finditer(pattern) if found[1] or found[2]]
    fits: list[Callable[[str], object]] = [
        re.compile(found[2] or "x", re.ASCII).fullmatch for found in parts
    ]
    done, waiting = 0, [(0, 0)]
    while waiting and done <= most:
        at, place = waiting.pop()
        done += 1
        if at == len(parts):
            if place == len(text):
                return True, done
        elif words := parts[at][1]:
            for word in reversed(words.replace("\\", "").split("|")):
                same = 0
                while same < len(word) and text[place + same : place + same + 1] == word[same]:
                    same += 1
                done += same + 1
                if same == len(word):
                    waiting.append((at + 1, place + same))
        else:
            often = parts[at][3]
            least, longest = int(often in ("", "+")), 1 if often in ("", "?") else len(text)
            end = place
            while end < len(text) and end - place < longest and fits[at](text[end]):
                end += 1
            done += end - place
            waiting += [(at + 1, one) for one in range(place + least, end + 1)]
    return False, done


def bound(pattern: str, text: str) -> int:
    return 2 * (len(text) + 1) * (len(pattern) + 2)


@pytest.mark.parametrize("pattern", ACCEPTED)
def test_patterns_of_the_grammar_are_accepted(pattern: str) -> None:
    assert is_linear(pattern)
    assert groups(pattern) == re.compile(pattern).groups


@pytest.mark.parametrize("pattern", REFUSED)
def test_patterns_that_are_not_of_the_grammar_are_refused(pattern: str) -> None:
    assert not is_linear(pattern)


def test_alternatives_that_begin_alike_take_exponential_time_and_are_refused() -> None:
    pattern, text = "(a|a)" * 24 + "b", "a" * 24
    most = 100 * bound(pattern, text)
    assert steps(pattern, text, most)[1] > most
    assert not is_linear(pattern)


@settings(max_examples=1000)
@given(PATTERNS, TEXTS)
def test_every_accepted_pattern_is_matched_in_a_bounded_number_of_steps(
    pattern: str, text: str
) -> None:
    most = bound(pattern, text)
    found, done = steps(pattern, text, most)
    assert done <= most
    assert found == matches(pattern, text) == bool(re.fullmatch(pattern, text, re.ASCII))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (".*" + "a" * LONGEST_END, "a" * 248 + "b"),
        ("[^b]*" + "a" * 31 + "c", "a" * 248 + "b"),
        ("".join(f"[^{one}]*{one}" for one in "abcdefghijklmnopqrstuvwxyz") + ".*x", "z" * 249),
        ("[^.]*" + "(" + "|".join(f"a{one}" for one in "bcdefghij") + ")", "a" * 249),
    ],
)
def test_the_slowest_patterns_are_matched_in_a_bounded_number_of_steps(
    pattern: str, text: str
) -> None:
    assert is_linear(pattern)
    most = bound(pattern, text)
    assert steps(pattern, text, most)[1] <= most


@pytest.mark.parametrize(
    ("pattern", "replacement", "topic", "expected"),
    [
        (r"east\.shop\.[^.]+\.(.+)", "east.$1", "east.shop.public.users", "east.users"),
        (r"east\.shop\.[^.]+\.(.+)", "east.$1", "east.other.users", "east.other.users"),
        (r"([^.]+)\.([^.]+)", "$2.$10", "a.b", "b.a0"),
        (".*users", "x", "east.users", "x"),
        # the first match from the start need not be the whole name
        (".*(b|cabd)", "x", "xcabd", "xd"),
    ],
)
def test_a_router_replaces_what_matches_first(
    pattern: str, replacement: str, topic: str, expected: str
) -> None:
    assert is_linear(pattern)
    assert replaced(pattern, replacement, topic) == expected


def test_a_replacement_names_groups_that_there_are_each_once() -> None:
    assert missing_groups("(a)(b)", "$1$2$3${routedByValue}") == ["$3", "${routedByValue}"]
    assert missing_groups(None, "$1${routedByValue}") == []
    assert repeats_group("$1.$1")
    assert not repeats_group("$1.$2")
