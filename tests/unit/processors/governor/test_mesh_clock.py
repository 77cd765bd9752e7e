"""The mesh's clock against brokers and machines whose clocks are wrong."""

import pytest

from processors.governor.mesh_clock import MeshClock

NOW = 1_790_000_000_000
MINUTE = 60_000
HOUR = 60 * MINUTE


class Times:
    """A machine that has run for `ran` ms and whose clock is `off` ms."""

    def __init__(self, off: int = 0) -> None:
        self.off, self.ran = off, 0

    def clock(self, *, started: int = NOW, last: int = NOW - MINUTE) -> MeshClock:
        return MeshClock(
            started,
            last,
            ticks=lambda: self.ran / 1000,
            here=lambda: (NOW + self.ran + self.off) / 1000,
        )


def test_it_counts_by_the_monotonic_clock() -> None:
    times = Times()
    clock = times.clock()
    times.ran += 5000
    assert clock.now(NOW) == NOW + 5000


@pytest.mark.parametrize("ahead", [10 * MINUTE, 26 * HOUR])
def test_it_does_not_follow_a_broker_that_was_ahead_at_the_start(ahead: int) -> None:
    assert Times().clock(started=NOW + ahead).now(NOW + ahead) == NOW


@pytest.mark.parametrize("off", [10 * MINUTE, 26 * HOUR, -HOUR])
def test_it_does_not_follow_a_broker_whose_clock_jumps_later(off: int) -> None:
    times = Times()
    clock = times.clock()
    clock.now(NOW)
    times.ran += 1000
    assert clock.now(NOW + off) == NOW + 1000
    times.ran += 1000
    assert clock.now(NOW + 2000) == NOW + 2000


def test_it_does_not_follow_a_machine_that_is_ahead() -> None:
    assert Times(off=HOUR).clock().now(NOW) == NOW


def test_a_machine_that_is_behind_at_the_start_does_not_turn_it_back() -> None:
    clock = Times(off=-HOUR).clock(last=NOW - 1000)
    assert clock.now(NOW) >= NOW - 1000


@pytest.mark.parametrize("quiet", [0, 10 * MINUTE, 30 * MINUTE])
def test_it_does_not_follow_a_broker_that_is_behind_the_last_decision(quiet: int) -> None:
    clock = Times().clock(started=NOW - HOUR, last=NOW - quiet)
    assert clock.now(NOW - HOUR) == NOW


def test_it_begins_at_the_earlier_clock_where_the_last_decision_does_not_tell() -> None:
    """Broker or worker is wrong. Behind, it can be set; ahead, it would have to stop."""
    for off in (HOUR, 26 * HOUR):
        assert Times().clock(started=NOW - off, last=NOW - 30 * HOUR).now(NOW - off) == NOW - off
        assert Times().clock(started=NOW + off, last=NOW - 30 * HOUR).now(NOW + off) == NOW


def test_it_tells_how_far_the_machine_is_ahead() -> None:
    times = Times(off=HOUR)
    clock = times.clock()
    assert clock.worker_skew(clock.now(NOW)) == HOUR
    times.ran += 5000
    assert clock.worker_skew(NOW) == HOUR + 5000


def test_it_is_not_before_what_is_decided() -> None:
    assert Times().clock().now(NOW + 300) == NOW + 300


def test_it_never_goes_back() -> None:
    times = Times()
    clock = times.clock()
    assert clock.now(NOW + 30_000) == NOW + 30_000
    times.ran += 1000
    assert clock.now(NOW + 1000) == NOW + 30_000


def test_it_is_set_once_machine_and_broker_agree_that_it_is_late() -> None:
    times = Times(off=-HOUR)
    clock = times.clock(last=NOW - 2 * HOUR)
    assert clock.now(NOW) == NOW - HOUR
    times.off = 0
    assert clock.now(NOW) == NOW - HOUR
    times.ran += 10 * MINUTE
    assert clock.now(NOW + times.ran) == NOW + times.ran


def test_a_step_of_both_that_is_put_right_again_moves_nothing() -> None:
    """On one machine the broker's clock is the worker's: a freeze of two hours ended at once."""
    times = Times()
    clock = times.clock()
    for off in (26 * HOUR, 0, 26 * HOUR, 0):
        times.off = off
        for _ in range(9):
            times.ran += MINUTE
            assert clock.now(NOW + times.ran + off) == NOW + times.ran


@pytest.mark.parametrize("restarted", [False, True])
def test_one_that_was_ahead_stops_until_machine_and_broker_have_caught_up(restarted: bool) -> None:
    times = Times(off=HOUR)
    clock = times.clock(started=NOW + HOUR)
    ahead = clock.now(NOW + HOUR)
    assert ahead == NOW + HOUR
    times.off = 0
    if restarted:
        clock = times.clock(last=ahead)
    times.ran += 10 * MINUTE
    assert clock.now(NOW + times.ran) == ahead
    times.ran += HOUR
    assert clock.now(NOW + times.ran) == NOW + times.ran


def test_a_quiet_log_does_not_turn_it_back() -> None:
    """The latest append time is old where nothing was said since."""
    times = Times()
    clock = times.clock()
    times.ran += 59_000
    assert clock.now(NOW) == NOW + 59_000
    times.ran += 10 * MINUTE
    assert clock.now(NOW) == NOW + 59_000 + 10 * MINUTE
