r"""What replaces a match: Java's `$1` and `\$`, checked and written for other groups. Pure."""

from collections.abc import Mapping

from spark_streams.sql.regex.cursor import Cursor

_DIGITS = frozenset("0123456789")


def replacement(text: str, groups: int, numbers: Mapping[int, int]) -> tuple[str, frozenset[int]]:
    """(the replacement for RE2, the groups that it names).

    Args:
        text: as it stands in the statement.
        groups: of the pattern as it stands there.
        numbers: number of a group there -> its number in the pattern that is matched.

    Raises:
        RegexError: a group that the pattern does not have, or a sign that Java refuses.
    """
    at = Cursor(text)
    found: list[str] = []
    named: set[int] = set()
    while at.more:
        start = at.index
        one = at.take()
        if one == "\\":
            if not at.more:
                raise at.refused("a backslash stands at the end", r"write \\", start)
            found.append(_literal(at.take()))
        elif one == "$":
            number = _number(at, start, groups)
            named.add(number)
            found.append(f"${numbers[number]}")
        elif found and found[-1].startswith("$") and one in _DIGITS:
            found.append(f"\\{one}")
        else:
            found.append(one)
    return "".join(found), frozenset(named)


def _number(at: Cursor, start: int, groups: int) -> int:
    """The number of a group: as many digits as a group of the pattern has."""
    if at.next not in _DIGITS:
        raise at.refused("$ names no group", r"write $1, or \$ for the sign", start)
    number = int(at.take())
    while at.next in _DIGITS and number * 10 + int(at.next) <= groups:
        number = number * 10 + int(at.take())
    if number > groups:
        raise at.refused(f"the pattern has no group {number}", "write (...) in the pattern", start)
    return number


def _literal(one: str) -> str:
    return f"\\{one}"
