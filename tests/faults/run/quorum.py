"""The leader of the log dies under load, on a cluster that may lose one broker."""

import time

from tests.faults.run.fault import Fault
from tests.faults.run.judge import log_is_right
from tests.faults.run.three_brokers import NODES, ThreeBrokers, three_brokers

ROUNDS = 5
BOUND_S = 480
RESUME_S = 10
"""The goal; more than three times as long is a failure."""


def kill_leaders(_: None) -> float:
    """Kill whoever leads, see that writing goes on, let it come back; the longest time counts.

    The checks come inside: the cluster is gone afterwards.
    """
    with three_brokers(BOUND_S) as ground:
        wait_in_sync(ground)
        longest = max(_round(ground) for _ in range(ROUNDS))
        wrong = log_is_right(ground)
        assert not wrong, "; ".join(wrong)
        return longest


def _round(ground: ThreeBrokers) -> float:
    leader = ground.leader()
    began = time.monotonic()
    ground.nodes[leader].kill()
    try:
        took = ground.pulse(began, 3 * RESUME_S)
    except AssertionError as late:
        last = ground.workers[-1].last_lines(20)
        raise AssertionError(f"node {leader} led and was killed; {late}\n{last}") from late
    assert ground.leader() != leader, f"node {leader} is dead and leads"
    ground.nodes[leader].start()
    wait_in_sync(ground)
    return took


def wait_in_sync(ground: ThreeBrokers) -> None:
    """Wait until every replica of the log is in sync."""
    ground.soon(lambda: ground.in_sync() == len(NODES), "all replicas are in sync")


FAULTS = (
    Fault(
        "leader-killed",
        f"three brokers, the log's leader killed {ROUNDS} times (goal {RESUME_S} s)",
        kill_leaders,
        lambda _: [],
        BOUND_S,
    ),
)
