"""Syntax that is refused, with its place and what to write."""

import pytest

from spark_streams.sql.regex import RegexError, Use, parse, replacement, rewrite

REFUSED = {
    r"\bab": "1 of the pattern: \\b is not supported: write what stands beside the word",
    r"a\B": "2 of the pattern: \\B",
    r"a\Z": "write $",
    r"\h": "write the characters",
    r"\R": r"write (?:\r\n|",
    r"\v": r"write [\n",
    r"\G": "\\G is not supported",
    r"\Qa\E": "write a backslash before each",
    r"\p{Alpha}": "write the ranges",
    r"(a)\1": "4 of the pattern: \\1",
    r"\k<a>": "\\k",
    r"\07": r"write \x and two digits",
    r"\cA": "\\c",
    r"\a": "\\a",
    r"\x{1f600}": "write the character itself",
    r"\x00": "write the character itself",
    r"\ud83d": "write the character itself",
    "\\\u00e4": "\u00e4 is not supported",
    "a\\": "a backslash stands at the end",
    "a\0": r"write \x00",
    "\ud83d": "write whole characters",
    "[a-z&&[^b]]": "&& intersects sets",
    "[[a]b]": "2 of the pattern: [ in a set",
    "[[:alpha:]]": "[ in a set",
    "[]a]": "write \\] for ]",
    "[^]a]": "write \\] for ]",
    "[a": "1 of the pattern: [ has no ]",
    "[a^]": "write \\^",
    "[a-c-e]": "5 of the pattern: - stands between",
    r"[\w-a]": "write \\-",
    r"[a-\w]": "begins behind its end",
    "[z-a]": "begins behind its end",
    "[--a]": "write \\-",
    "[^\U0001f600]": "beyond U+FFFF",
    "[a-\U0001f600]": "write a smaller range",
    r"[\d\D]": "or of all",
    "a*+": "3 of the pattern: a repetition is repeated or possessive",
    "a++": "possessive",
    "a?+": "possessive",
    "a{2}{3}": "repetition is repeated",
    "a**": "repetition is repeated",
    "*a": "write \\*",
    "a|*": "write \\*",
    "^*": "an anchor is repeated",
    "a{,2}": "{ begins no repetition",
    "a{": "{ begins no repetition",
    "a}": "write \\}",
    "a]": "write \\]",
    "a{3,2}": "write the smaller number",
    "a{0}": "from 1 to",
    "a{1001}": "from 1 to",
    "(a{100}){100}": "2000 instructions",
    "(a*)*": "may be empty",
    "(|a)+": "an alternative is empty",
    "(a?)?": "may be empty",
    "(^|a)*": "may be empty",
    "()": "an alternative is empty",
    "a||b": "an alternative is empty",
    "": "it is empty",
    "a" * 1001: "at most 1000",
    "(" * 51 + "a" + ")" * 51: "50 levels",
    "(a": "1 of the pattern: ( has no )",
    "a)": "write \\)",
    "(?=a)": "(?= is not supported",
    "(?!a)": "(?!",
    "(?<!a)b": "(?<",
    "(?<name>a)": "(?<",
    "(?P<name>a)": "(?P",
    "(?>a)": "(?>",
    "(?m)^a": "(?m",
    "(?x)a": "(?x",
    "(?u)a": "(?u",
    "(?U)a": "(?U",
    "(?-i)a": "(?-",
    "a(?i)b": "begin a pattern",
    "(?i:a)": "begin a pattern",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_syntax_that_is_not_known_to_mean_the_same_is_refused(pattern: str) -> None:
    with pytest.raises(RegexError) as refused:
        parse(pattern)
    assert REFUSED[pattern] in str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "use", "reason"),
    [
        ("a*", Use.REPLACE, "also matches an empty text"),
        ("a*", Use.COUNT, "also matches an empty text"),
        ("^", Use.GROUPS, "also matches an empty text"),
        ("a|b?", Use.SPLIT, "also matches an empty text"),
        ("a$", Use.SPLIT, "splits no text"),
        ("a$|b$", Use.GROUP, r"(?:a|b)$"),
        (r"a$|\n", Use.REPLACE, "another alternative"),
        ("a$b", Use.PLACE, "2 of the pattern: $ stands within"),
        ("(a$)+", Use.PLACE, "within"),
        ("(a|$)", Use.GROUP, "within"),
        ("[^\n]+$", Use.PLACE, r"only one of \r and \n"),
        (r"\s$", Use.PLACE, "not as often as it can"),
        (r"\s{1,2}$", Use.PLACE, "not as often as it can"),
        (r"\s+?$", Use.PLACE, "not as often as it can"),
        (r"\s+b*$", Use.PLACE, "not as often as it can"),
        (r"a\n$", Use.PLACE, "not as often as it can"),
    ],
)
def test_a_use_for_which_re2_would_find_another_match_is_refused(
    pattern: str, use: Use, reason: str
) -> None:
    with pytest.raises(RegexError) as refused:
        rewrite(parse(pattern), use, 0)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("text", "groups", "written"),
    [
        ("", 0, ""),
        ("a$0b", 0, "a$0b"),
        ("$1$2", 2, "$1$3"),
        ("$12", 1, r"$1\2"),
        (r"\$1\\\a", 0, r"\$\1\\\a".replace(r"\1", "1")),
        (r"$1\2", 1, r"$1\2"),
    ],
)
def test_a_replacement_names_the_groups_of_the_pattern_that_is_matched(
    text: str, groups: int, written: str
) -> None:
    assert replacement(text, groups, {0: 0, 1: 1, 2: 3})[0] == written


@pytest.mark.parametrize("text", ["$", "a$b", "${name}", "$2", "a\\"])
def test_a_replacement_that_java_refuses_is_refused(text: str) -> None:
    with pytest.raises(RegexError):
        replacement(text, 1, {0: 0, 1: 1})
