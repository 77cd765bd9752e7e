"""The answer to an intent that stands on the log more than once.

Who gets no answer from Kafka appends the very same record again, and anybody can append copies.
Only one of the records with the same bytes is judged at any time; the others are set aside as
copies of it. What it is told is the answer to all of them.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from mesh_events.decisions import (
    Decision,
    IntentAccepted,
    IntentQuarantined,
    IntentRejected,
    RecordsSetAside,
)
from mesh_events.record import SIGNER, FaultCode, Record

WINDOW = 64
"""Records before a copy that are searched first; eight times as many each next time."""
MOST = WINDOW * 8**4
"""Records that are searched at once at most; what stands further back is not found."""


class Found(NamedTuple):
    """A decision and where it stands."""

    decision: Decision
    offset: int


def is_repeat(event: Decision) -> bool:
    """Whether a decision may be on a copy: of a range it tells the codes of all its records."""
    if isinstance(event, RecordsSetAside):
        return FaultCode.DUPLICATE_INTENT.value in event.counts
    if isinstance(event, IntentQuarantined | IntentRejected):
        return event.code == FaultCode.DUPLICATE_INTENT.value
    return False


def is_same(record: Record, other: Record) -> bool:
    """Whether two records say the same under the same key."""
    signed = record.key, record.value, record.headers.get(SIGNER)
    return signed == (other.key, other.value, other.headers.get(SIGNER))


def first_answer(
    copy: Record,
    between: Callable[[int, int], Iterable[Record]],
    decision_on: Callable[[int], Found],
) -> Found | None:
    """The decision that judges an earlier record with the bytes of `copy`, None if none is found.

    Args:
        copy: a record that was set aside.
        between: the records of the log in [first, end).
        decision_on: waits for the decision on the record at an offset.
    """
    set_aside: list[Decision] = []
    end, window = copy.offset, WINDOW
    while end > 0 and window <= MOST:
        first = max(0, end - window)
        for offset in [one.offset for one in between(first, end) if is_same(one, copy)]:
            if any(_decides(one, offset) for one in set_aside):
                continue
            found = decision_on(offset)
            if _judges(found.decision):
                return found
            set_aside.append(found.decision)
        end, window = first, window * 8
    return None


def _decides(event: Decision, offset: int) -> bool:
    return isinstance(event, RecordsSetAside) and event.decides(offset)


def _judges(event: Decision) -> bool:
    return isinstance(event, IntentAccepted | IntentRejected) and not is_repeat(event)
