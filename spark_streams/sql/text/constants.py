"""Constants as they stand in a text: TRUE, numbers, DATE '2026-01-31', INTERVAL 1 DAY. Pure."""

from spark_streams.sql.functions import calls
from spark_streams.sql.functions.allowed import clock
from spark_streams.sql.text import literals
from spark_streams.sql.text.syntax import Words
from spark_streams.sql.text.tree import Constant, Interval, Moment, Node
from spark_streams.sql.text.words import Kind

CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
TIMES = {"DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMP_LTZ": "timestamp"}
TIMES |= {"TIMESTAMP_NTZ": "timestamp_ntz"}


def constant(words: Words) -> Node:
    """TRUE, FALSE or NULL."""
    word = words.next()
    return Constant(CONSTANTS[word.upper], start=word.start, end=word.end)


def moment(words: Words) -> Node:
    """A day or time, checked to be one of the calendar."""
    word, text = words.next(), words.next()
    kind = TIMES[word.upper]
    found = literals.moment(kind, text.text)
    if found is None:
        example = "'2026-01-31'" if kind == "date" else "'2026-01-31 10:00:00'"
        if calls.is_clock_word(text.text):
            raise words.refused(clock(f"'{text.text}' as a time"), text)
        raise words.wrong(
            f"{word.text} is followed by a day of the calendar: {word.upper} {example}", text
        )
    return Moment(kind, found, start=word.start, end=text.end)


def interval(words: Words) -> Node:
    """INTERVAL with a number for each unit."""
    start, parts = words.next().start, []
    while True:
        sign = "-" if words.takes("-") else ""
        if words.current.kind not in (Kind.NUMBER, Kind.STRING):
            raise words.refused("INTERVAL: a number and its unit are expected, INTERVAL 1 DAY")
        number, unit = words.next(), literals.unit_of(words.current.upper)
        if unit is None:
            raise words.refused("INTERVAL: a number and its unit are expected, INTERVAL 1 DAY")
        words.next()
        parts.append((sign + number.text, unit))
        if words.sees("TO"):
            raise words.refused("INTERVAL with TO: write a number for each unit")
        more = words.current.kind in (Kind.NUMBER, Kind.STRING)
        if not more or literals.unit_of(words.ahead(1).upper) is None:
            break
    try:
        amount, first, last = literals.interval(parts)
    except ValueError as error:
        raise words.refused(f"INTERVAL: {error}", words.before) from error
    return Interval(amount, first, last, start=start, end=words.before.end)


def number(words: Words, digits: str, start: int, end: int) -> Node:
    """A number by its digits, which stand between `start` and `end`."""
    try:
        return literals.number(digits, start, end)
    except ValueError as error:
        raise words.refused(str(error), words.before) from error
