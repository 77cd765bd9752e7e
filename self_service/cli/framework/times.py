"""Times as people write them: ISO 8601 or `10m ago`; and log times as people read them."""

import re
from datetime import UTC, datetime, timedelta

from mesh_events.errors import InvalidValueError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_DURATION = re.compile(rf"(?:{_PART.pattern}\s*)+")
_AGO = re.compile(rf"((?:{_PART.pattern}\s*)+)(?:ago)?")


def parse_time(text: str, now: datetime) -> datetime:
    """A point in time, UTC.

    Args:
        text: ISO 8601 (without a zone it is UTC), `now`, or how long ago: `90s ago`, `1h30m`.
        now: what `now` and `ago` count from.

    Raises:
        InvalidValueError: none of these.
    """
    wanted = text.strip()
    if wanted == "now":
        return now
    try:
        if ago := _AGO.fullmatch(wanted):
            return now - timedelta(seconds=_seconds(ago[1]))
        found = datetime.fromisoformat(wanted)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError:
        raise InvalidValueError(f"{text[:80]!r} is outside the years 1 to 9999") from None
    except ValueError:
        raise InvalidValueError(
            f"{text[:80]!r} is not a time: give ISO 8601, such as 2026-01-31T12:00:00Z, "
            "or '10m ago'"
        ) from None


def parse_duration(text: str) -> timedelta:
    """How long, such as `90s` or `1h30m`; raises InvalidValueError for anything else."""
    if not _DURATION.fullmatch(text.strip()):
        raise InvalidValueError(f"{text[:80]!r} is not a duration: give one such as 90m or 2h30m")
    try:
        return timedelta(seconds=_seconds(text))
    except OverflowError:
        raise InvalidValueError(f"{text[:80]!r} is too long") from None


def _seconds(text: str) -> float:
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def value(moment: datetime) -> str:
    """A moment in a record as ISO 8601, UTC, to the microsecond where it has one.

    Local time, which belongs to no zone, has no Z.
    """
    precision = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    if moment.tzinfo is None:
        return moment.isoformat(timespec=precision)
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def stamp(moment: int | datetime | None) -> str | None:
    """Log time (ms) or a datetime as ISO 8601 with milliseconds, UTC; None stays None.

    A producer may set any 64 bits as a record's time: what is no date is told in ms.
    """
    if moment is None:
        return None
    if isinstance(moment, int):
        try:
            # not by a float, which rounds what is far away
            moment = _EPOCH + timedelta(milliseconds=moment)
        except OverflowError:
            return f"{moment} ms"
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def present(last: int) -> int:
    """Ms since 1970 now, from which an age counts.

    By this machine's clock, but never before the log's last record: one that is late made ages
    of 0.

    Args:
        last: the time of that record, ms.
    """
    return max(last, round(datetime.now(UTC).timestamp() * 1000))


def span(milliseconds_: int) -> str:
    """A duration in ms as people read it: `12 ms`, `3.4 s`, `5 min 2 s`."""
    if milliseconds_ < 1000:
        return f"{milliseconds_} ms"
    if milliseconds_ < 60_000:
        return f"{milliseconds_ // 100 / 10:.1f} s"
    minutes, seconds = divmod(milliseconds_ // 1000, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"
