"""Literals whose meaning is checked here, so that Spark never has to read them. Pure."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from math import isinf

from spark_streams.sql.text.tree import Form, Number

_NUMBER = re.compile(r"(\d*)\.?(\d*)(e[+-]?\d+)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:\d{2})?)?"
)
_MONTHS = {"YEAR": 12, "MONTH": 1}
_MICROS = {
    "WEEK": 604_800_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_COUNTS_AS = {"WEEK": "DAY", "MILLISECOND": "SECOND", "MICROSECOND": "SECOND"}
_ORDER = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_LONG = 2**63
_INT = 2**31
MOST_DIGITS = 38
"""Digits of Spark's decimals."""


def number(digits: str, start: int, end: int) -> Number:
    """A number as it is written: DECIMAL with a point, DOUBLE with an exponent.

    Raises:
        ValueError: it is none that Spark has a type for.
    """
    _, fraction, exponent = _parts(digits)
    if exponent:
        if isinf(float(digits)):
            raise ValueError(f"{digits} is more than a DOUBLE can be")
        return Number(digits, Form.DOUBLE, start=start, end=end)
    if max(precision_of(digits)) > MOST_DIGITS:
        raise ValueError(f"a number has at most {MOST_DIGITS} digits")
    if fraction or "." in digits or not -_LONG <= int(digits) < _LONG:
        return Number(digits, Form.DECIMAL, start=start, end=end)
    return Number(digits, Form.INTEGER, start=start, end=end)


def _parts(digits: str) -> tuple[str, str, str]:
    found = _NUMBER.fullmatch(digits.lstrip("-"))
    if found is None:
        raise ValueError(f"{digits} is no number")
    return found[1], found[2], found[3] or ""


def precision_of(digits: str) -> tuple[int, int]:
    """(precision, scale) of the decimal type that Spark gives to a literal."""
    whole, fraction, _ = _parts(digits)
    significant = len((whole + fraction).lstrip("0")) or 1
    return max(significant, len(fraction)), len(fraction)


_BLANK = "".join(map(chr, range(33)))
"""What Spark leaves out around a time; Python would strip more."""


def moment(kind: str, text: str) -> str | None:
    """A date or time as ISO 8601, None for what is none.

    Args:
        kind: `date`, `timestamp` or `timestamp_ntz`. A `timestamp` without a zone is in UTC.
        text: as it was written; Spark also takes shorter forms, and words such as 'now'.
    """
    stripped = text.strip(_BLANK)
    if (_DATE if kind == "date" else _TIME).fullmatch(stripped) is None:
        return None
    try:
        if kind == "date":
            return date.fromisoformat(stripped).isoformat()
        found = datetime.fromisoformat(_padded(stripped))
        if kind == "timestamp":
            zoned = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
            return zoned.isoformat()
    except (ValueError, OverflowError):
        return None
    return None if found.tzinfo is not None else found.isoformat()


def is_moment(text: str, kind: str = "timestamp") -> bool:
    """Whether a string is a date, or a time that stands still.

    kind: what it is taken for; a `date` would lose the time of one that has a time, a
        `timestamp_ntz` the zone of one that has a zone.
    """
    kinds = ("date", "timestamp_ntz", "timestamp")
    return any(moment(one, text) is not None for one in kinds[: kinds.index(kind) + 1])


def _padded(text: str) -> str:
    """With six digits behind the point, as Python wants them."""
    return re.sub(r"\.(\d+)", lambda found: f".{found[1]:0<6}", text)


def unit_of(word: str) -> str | None:
    """A unit of intervals, also in the plural; None for anything else."""
    name = word.upper().removesuffix("S")
    return name if name in _MONTHS or name in _MICROS else None


def interval(parts: Sequence[tuple[str, str]]) -> tuple[int, str, str]:
    """(months or microseconds, first unit, last unit) of numbers with their units.

    Raises:
        ValueError: with what is wrong.
    """
    months = {unit for _, unit in parts if unit in _MONTHS}
    if months and len(months) < len({unit for _, unit in parts}):
        raise ValueError("months and years are no part of days and times: write two intervals")
    units = [_COUNTS_AS.get(unit, unit) for _, unit in parts]
    if len(set(units)) < len(units):
        raise ValueError("a unit comes twice")
    places = sorted(_ORDER.index(unit) for unit in units)
    each = _MONTHS if months else _MICROS
    amount = sum(_amount(number, unit, each[unit]) for number, unit in parts)
    bound = _INT if months else min(_LONG, timedelta.max // timedelta(microseconds=1))
    if not -bound < amount < bound:
        raise ValueError("it is too long")
    return amount, _ORDER[places[0]], _ORDER[places[-1]]


def _amount(text: str, unit: str, each: int) -> int:
    found = re.fullmatch(r"\s*([+-]?)(\d{1,18})(?:\.(\d{1,6}))?\s*", text)
    if found is None or (found[3] and unit != "SECOND"):
        raise ValueError(f"{text} {unit}: a whole number is expected")
    amount = int(found[2]) * each + int(f"{found[3] or '':0<6}")
    return -amount if found[1] == "-" else amount
