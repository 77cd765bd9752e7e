"""What `sdm domain` shows of a freeze: what the governor goes by, at the time that is asked for."""

from datetime import UTC, datetime, timedelta

import pytest

from mesh_events import intents
from mesh_events.meta import milliseconds
from self_service.cli.domain.commands import _fields, time_of
from self_service.cli.framework.options import Reading
from self_service.cli.framework.times import stamp
from self_service.cli.mesh.context import Mesh
from self_service.cli.platform import commands
from self_service.cli.streaming.dry_run import refusal, supposed
from self_service.cli.streaming.wording import worded
from tests.memory_log import MemoryLog
from tests.unit.self_service.streaming.test_statement_dry_run import at, log_of_west

MINUTE = 60_000


@pytest.fixture
def frozen() -> MemoryLog:
    """West is frozen for a minute of 2026 that has passed."""
    log = log_of_west()
    log.operator(intents.DomainFrozen, domain="west", until=at(log.now + MINUTE), reason="to look")
    log.govern()
    return log


def shown(log: MemoryLog, reading: Reading, skew: int = 0) -> str | None:
    image = log.image._replace(skew=skew)
    found = image.identity.domains["west"]
    until: str | None = _fields(image, found, time_of(image, reading))["frozen_until"]
    return until


def test_a_freeze_has_ended_by_now_and_had_not_as_of_its_time(frozen: MemoryLog) -> None:
    ends = frozen.image.identity.freezes["west"].until
    assert datetime.fromtimestamp(ends / 1000, UTC) < datetime.now(UTC) - timedelta(minutes=1)
    assert shown(frozen, Reading()) is None
    assert shown(frozen, Reading(as_of=stamp(ends - 1))) == stamp(ends)
    assert shown(frozen, Reading(as_of=stamp(ends))) is None
    assert shown(frozen, Reading(at_offset=frozen.image.offset)) == stamp(ends)


@pytest.mark.parametrize("skew", [3_600_000, -3_600_000])
def test_no_freeze_is_shown_as_ended_while_clocks_disagree(frozen: MemoryLog, skew: int) -> None:
    assert shown(frozen, Reading(), skew) == stamp(frozen.image.identity.freezes["west"].until)


def test_a_freeze_that_ends_later_is_shown(frozen: MemoryLog) -> None:
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    frozen.operator(intents.DomainFrozen, domain="west", until=until, reason="to look")
    frozen.govern()
    assert shown(frozen, Reading()) == stamp(milliseconds(until))


def test_a_freeze_that_ends_later_is_shown_as_of_a_time_to_come(frozen: MemoryLog) -> None:
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    frozen.operator(intents.DomainFrozen, domain="west", until=until, reason="to look")
    frozen.govern()
    to_come = Reading(as_of=(until + timedelta(hours=1)).isoformat())
    assert shown(frozen, to_come) == stamp(milliseconds(until))


@pytest.fixture
def ahead() -> MemoryLog:
    """A log an hour ahead of this machine, on which west is frozen for a minute."""
    log = log_of_west()
    log.now = milliseconds(datetime.now(UTC)) + 60 * MINUTE
    log.operator(intents.DomainFrozen, domain="west", until=at(log.now + MINUTE), reason="to look")
    log.govern()
    return log


def test_a_freeze_that_the_log_has_passed_is_not_shown_where_this_machine_is_late(
    ahead: MemoryLog,
) -> None:
    until = ahead.image.identity.freezes["west"].until
    assert shown(ahead, Reading()) == stamp(until)
    pass_by(ahead, until)
    assert shown(ahead, Reading()) is None


def test_status_lists_no_freeze_that_the_log_has_passed(
    ahead: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed() -> list[str]:
        _, parts, fault = commands._mesh([])
        assert fault is None
        return [one["domain"] for one in parts["emergencies"].items]

    monkeypatch.setattr(commands, "_rows_behind", lambda *_: 0)
    monkeypatch.setattr(Mesh, "image", lambda *_: ahead.image)
    assert listed() == ["west"]
    pass_by(ahead, ahead.image.identity.freezes["west"].until)
    assert listed() == []


def test_a_dry_run_refuses_nothing_for_a_freeze_that_the_log_has_passed(ahead: MemoryLog) -> None:
    def code() -> str:
        refused = refusal(ahead.image, supposed("west.later", meant))
        return refused.code if refused else ""

    text = "INSERT INTO out SELECT ip FROM clicks"
    meant = worded(ahead.image, "west", text, {}, None, None)
    assert code() == "domain_frozen"
    pass_by(ahead, ahead.image.identity.freezes["west"].until)
    assert code() == ""


def pass_by(log: MemoryLog, moment: int) -> None:
    """Let west say something at a moment that this machine's clock has not reached."""
    assert milliseconds(datetime.now(UTC)) < moment
    log.now = moment
    log.say(intents.ApplicationRegistered, "west", application="west.later")
    log.govern()
