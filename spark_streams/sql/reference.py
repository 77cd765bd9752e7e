"""The functions for people, as `docs/reference/sql-functions.md` has them.

`python -m spark_streams.sql.reference > docs/reference/sql-functions.md` writes it.
"""

import sys

from spark_streams.sql.functions.allowed import FUNCTIONS, MANY, Function, Growth

HEAD = """# Functions of streaming SQL

Made by `python -m spark_streams.sql.reference`. A statement may call these functions and no others;
each means what it means in Spark SQL, but for `size` and `cardinality` of null, which are null, as
in Spark's ANSI mode, and not -1. See [how statements are written](../how-to/streaming-sql.md).

"bounded" says that a value may only become as long as the text itself tells.
"""
PATTERNS = r"""## Regular expressions

`RLIKE`, `regexp_count`, `regexp_extract`, `regexp_extract_all`, `regexp_instr`, `regexp_like`,
`regexp_replace`, `regexp_substr` and `split` give the values that Spark gives. Spark reads a
pattern as `java.util.regex` does, in time that may be exponential. A statement matches it in linear
time, and refuses what is not known to give Spark's value, with the place, the reason and what to
write.

| allowed | meaning, as in Spark |
|---|---|
| characters, also `\t` `\n` `\r` `\f` `\x41` `\u0041`, and `\.` before a sign | themselves |
| `.` | any character but `\n`, `\r`, U+0085, U+2028 and U+2029; with `(?s)` any |
| `\d` `\w` `\s` and `\D` `\W` `\S` | characters of ASCII; `\s` has `\x0b`, too |
| `[abc]` `[^a-z\d]` | a set; `[`, `]`, `^` and `&&` in it stand behind a backslash |
| `^` `\A` | the begin of the text |
| `$` | the end of the text, also before a line terminator that it ends with |
| `\z` | the end of the text |
| `a*` `a+` `a?` `a{2}` `a{2,}` `a{2,3}` | as often as possible, 1 000 times at most for a number |
| `a*?` `a+?` `a??` `a{2,3}?` | as seldom as possible |
| `(a)` `(?:a)` `a\|b` | groups, alternatives |
| `(?i)` `(?s)` `(?is)` at the begin | both cases of ASCII letters; `.` matches all |

Refused are, among others:

- `\b` and `\B`, whose words depend on the version of Java: write `(^|[^A-Za-z0-9_])word`;
- `\p{..}`, `\h`, `\v`, `\R`, `\Z`, `\G`, `\Q..\E`, octal digits, `\1`, names of groups, `(?m)`,
  `(?x)`, `(?u)`, flags within a pattern, `(?=..)`, `(?!..)`, `(?<..)`, `(?>..)`, `a*+`, and sets
  in sets;
- a repetition of what may be empty, as `(a*)*`, an empty alternative, as `(a|)`, and an empty
  pattern (`split` takes it);
- `$` that is not at the end, or that stands behind what may match a line terminator, but not as
  often as it can: `\s+$` and `[^,]+$` are allowed, `\s$` and `[^\n]+$` are not. `RLIKE`,
  `regexp_like` and `regexp_instr` also take `(,|$)` at the end; `split` takes no `$`;
- in `regexp_count`, `regexp_extract_all`, `regexp_replace` and `split`, a pattern that also matches
  an empty text, as `a*`: write `a+`;
- in a replacement, `$` before anything but the number of a group, as in `${name}`; `\$` is the
  sign. In a replacement that is a column, such a sign makes the record a dead letter
  (`INVALID_REPLACEMENT`), as does a group that is not there (`NO_SUCH_GROUP`);
- in `regexp_extract` and `regexp_extract_all`, a group that the pattern does not have: without a
  third argument that is group 1. In a column, it makes the record a dead letter (`NO_SUCH_GROUP`).

A pattern of `LIKE` or `ILIKE` with more than one `%`, where they are not the first and the last
character, has no characters beyond U+FFFF; with `ILIKE`, also no `Σ` and no `İ`. Patterns of
schemas (`validatedString`) are RE2's, not Spark's: see [strings that have to look like
something](../how-to/streaming-sql.md#strings-that-have-to-look-like-something).
"""


def page() -> str:
    """The page as Markdown."""
    groups: dict[str, list[str]] = {}
    for name, function in sorted(FUNCTIONS.items()):
        bounded = "bounded" if function.growth is not Growth.NONE else ""
        row = f"| `{name}` | {_arguments(function)} | {bounded} |"
        groups.setdefault(function.group, []).append(row)
    parts = [HEAD]
    for group, rows in sorted(groups.items()):
        parts.append("\n".join([f"## {group}\n", "| function | arguments | |", "|---|---|---|"]))
        parts[-1] += "\n" + "\n".join(rows) + "\n"
    return "\n".join([*parts, PATTERNS])


def _arguments(function: Function) -> str:
    if function.most == MANY:
        return f"{function.least} or more"
    if function.least == function.most:
        return str(function.least)
    return f"{function.least} to {function.most}"


if __name__ == "__main__":
    sys.stdout.write(page())
