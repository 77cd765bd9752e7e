from datetime import UTC, datetime

import pytest

from mesh_events.errors import InvalidValueError
from mesh_events.meta import milliseconds
from self_service.cli.framework.times import parse_time, present, span, stamp, value

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("2026-01-31T10:00:00Z", datetime(2026, 1, 31, 10, 0, tzinfo=UTC)),
        ("2026-01-31T10:00:00+02:00", datetime(2026, 1, 31, 8, 0, tzinfo=UTC)),
        ("2026-01-31T10:00:00.250", datetime(2026, 1, 31, 10, 0, 0, 250_000, UTC)),
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("10m ago", datetime(2026, 1, 31, 11, 50, tzinfo=UTC)),
        ("10m", datetime(2026, 1, 31, 11, 50, tzinfo=UTC)),
        ("1h30m ago", datetime(2026, 1, 31, 10, 30, tzinfo=UTC)),
        ("1 d ago", datetime(2026, 1, 30, 12, 0, tzinfo=UTC)),
        ("0.5s ago", datetime(2026, 1, 31, 11, 59, 59, 500_000, UTC)),
    ],
)
def test_a_time_is_read_as_written(text: str, expected: datetime) -> None:
    assert parse_time(text, NOW) == expected


def test_now_is_not_before_the_last_record_of_the_log() -> None:
    """A machine whose clock is late counts from there, and not from a time before it."""
    here = milliseconds(datetime.now(UTC))
    assert here <= present(0) < here + 60_000
    assert present(here + 3_600_000) == here + 3_600_000


@pytest.mark.parametrize("text", ["", "yesterday", "10 ago", "10", "ago", "2026-13-01", "5y ago"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidValueError, match="ISO 8601"):
        parse_time(text, NOW)


@pytest.mark.parametrize(
    "text",
    [
        "99999999999999999999h ago",
        f"{'9' * 400}w ago",
        "3000000d ago",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_a_time_out_of_range_is_told(text: str) -> None:
    with pytest.raises(InvalidValueError, match="years 1 to 9999"):
        parse_time(text, NOW)


def test_a_records_time_that_is_no_date_is_told_in_milliseconds() -> None:
    assert stamp(2**62) == f"{2**62} ms"


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "253402300800000 ms"),
    ],
)
def test_each_millisecond_of_the_calendar_is_shown_as_it_is(moment: int, expected: str) -> None:
    assert stamp(moment) == expected


def test_log_time_is_shown_in_utc_with_milliseconds() -> None:
    moment = datetime(2026, 1, 31, 10, 0, 0, 250_000, UTC)
    assert stamp(milliseconds(moment)) == "2026-01-31T10:00:00.250Z"
    assert parse_time(stamp(moment) or "", NOW) == moment
    assert stamp(None) is None


@pytest.mark.parametrize(
    ("milliseconds_", "expected"),
    [
        (12, "12 ms"),
        (3400, "3.4 s"),
        (59_990, "59.9 s"),
        (302_000, "5 min 2 s"),
        (7_260_000, "2 h 1 min"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_a_duration_is_shown_in_its_own_unit(milliseconds_: int, expected: str) -> None:
    assert span(milliseconds_) == expected


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 120_000, UTC), "2026-01-02T03:04:05.120Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 123_456, UTC), "2026-01-02T03:04:05.123456Z"),
        # of no zone: not the same as UTC
        (datetime(2026, 1, 2, 3, 4, 5, 1), "2026-01-02T03:04:05.000001"),  # noqa: DTZ001
    ],
)
def test_a_moment_in_a_record_is_told_whole(moment: datetime, text: str) -> None:
    assert value(moment) == text
