"""The controller of forwarding: sends what stands on `mesh.lineage` to an OpenLineage receiver.

The topic is the truth, and the receiver follows it: every event in its order, at least once. After
a crash, or when another worker takes over, the last few are sent again; a receiver knows an event
by its run, type and time, and takes it twice. The end of a run has the time of its fact on the log:
written by two workers, one after the other, it is the same event and is sent once.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from mesh_events.errors import MeshError
from processors.controllers.controller import Leadership, guarded
from processors.controllers.retry import wait_before
from processors.lineage.receiver import Answer, Outcome, Receiver
from projections.image import Image

log = structlog.get_logger(__name__)
ROUND_S = 5.0
"""A round begins nothing new after so long; what is left is for the next."""
RETRY_FIRST_S, RETRY_MOST_S = 1.0, 300.0
ENDS = frozenset({"COMPLETE", "ABORT", "FAIL"})
REMEMBERED = 1000
"""So many ends of runs are remembered: two workers may have written the same one."""
TRIES = 20
"""A receiver that fails over the same event so often, in about an hour, is not sent it any more."""
DOUBT = 3
"""After so many failures it is sent the event again that it took last: where it takes that, the
other one is to blame. A domain could hold up everybody's events with one for an hour otherwise."""
SUSPECTS = 1000
"""So many jobs are remembered whose events it fails over: those have half of the time together."""

_LAST = "it failed over the job's event before"


@dataclass(frozen=True, slots=True)
class Written:
    """One event as it stands on the topic: JSON in UTF-8, unless somebody else wrote there."""

    offset: int
    value: bytes | None


class Events(Protocol):
    """The topic, from where it was read last; methods raise MeshError."""

    def first(self) -> Written | None:
        """The first event that was not dealt with; None if there is none now."""

    def dealt_with(self) -> None:
        """Go on behind the first one."""

    def save(self) -> None:
        """Remember for good how far it was read."""

    def close(self) -> None:
        """Leave; what was not saved is read again."""


class ForwardingController:
    """Forwards lineage while this worker leads.

    An event that the receiver refuses is logged and passed over. A receiver that is away is waited
    for, as long as the topic keeps its events.

    Args:
        open_events: begins to read at the saved place; raises MeshError.
        receiver: where events go.
        clock: seconds that only go forward.
    """

    name = "forwarding"

    def __init__(
        self,
        open_events: Callable[[], Events],
        receiver: Receiver,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open, self._receiver, self._clock = open_events, receiver, clock
        self._events: Events | None = None
        self._epoch: int | None = None
        # failures in a row, and how many of them the first event may be to blame for
        self._attempts = self._faults = 0
        self._not_before = float("-inf")
        self._taken: bytes | None = None
        # (run, type, time) of the latest ends that were dealt with, the oldest first
        self._ended: dict[tuple[str, str, str], None] = {}
        # jobs whose latest event the receiver has failed over, the oldest first
        self._suspects: dict[str, None] = {}
        self._suspects_rest = float("-inf")

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Forward for a while, unless the receiver or Kafka is waited for."""
        del image
        if self._epoch != leadership.epoch:
            # another worker may have gone on from here
            self._leave()
            self._epoch = leadership.epoch
        if self._clock() < self._not_before:
            return
        try:
            with guarded("the receiver of lineage"):
                if self._events is None:
                    self._events = self._open()
                self._forward(self._events, leadership)
        except MeshError as error:
            log.warning("lineage_not_read", error=str(error), again_in_s=self._wait())
            self._close()
            return
        try:
            self._events.save()
        except MeshError as error:
            # what was sent since is sent again after a restart, and not before
            log.warning("lineage_place_not_saved", error=str(error))

    def close(self) -> None:
        """Leave Kafka."""
        self._leave()

    def _forward(self, events: Events, leadership: Leadership) -> None:
        until = self._clock() + ROUND_S
        while self._clock() < until and (event := events.first()) is not None:
            leadership.check()
            end = _end(event.value)
            if end is not None and end in self._ended:
                log.info("lineage_end_repeated", offset=event.offset, run=end[0])
            elif not self._is_dealt_with(event):
                return
            elif end is not None:
                self._remember(end)
            events.dealt_with()
            self._attempts = self._faults = 0

    def _remember(self, end: tuple[str, str, str]) -> None:
        self._ended[end] = None
        if len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]

    def _is_dealt_with(self, event: Written) -> bool:
        """Whether the next one may be sent."""
        value, about = event.value, _about(event.value)
        if value is None or about is None:
            log.warning("lineage_event_unreadable", offset=event.offset)
            return True
        job, began = about["job"], self._clock()
        is_suspect = job in self._suspects
        if is_suspect and began < self._suspects_rest:
            log.warning("lineage_event_passed_over", offset=event.offset, reason=_LAST, **about)
            return True
        answer = self._receiver.send(value)
        if answer.outcome is Outcome.TAKEN:
            self._taken = value
            self._suspects.pop(job, None)
            return True
        doubt = 1 if is_suspect else DOUBT
        if answer.outcome is Outcome.REFUSED or self._is_hopeless(answer, value, doubt):
            log.warning(
                "lineage_event_passed_over", offset=event.offset, reason=answer.reason, **about
            )
            if answer.outcome is Outcome.FAILED:
                self._suspect(job, self._clock() - began)
            return True
        again = self._wait()
        log.warning("lineage_not_taken", reason=answer.reason, again_in_s=again, **about)
        return False

    def _suspect(self, job: str, took: float) -> None:
        """The next event of such a job is tried once, and after a rest as long as this one took."""
        self._suspects.pop(job, None)
        self._suspects[job] = None
        if len(self._suspects) > SUSPECTS:
            del self._suspects[next(iter(self._suspects))]
        self._suspects_rest = self._clock() + took

    def _is_hopeless(self, answer: Answer, value: bytes, doubt: int) -> bool:
        self._faults += answer.outcome is Outcome.FAILED
        if answer.outcome is not Outcome.FAILED or self._faults < doubt:
            return False
        return self._faults >= TRIES or self._takes_others(value)

    def _takes_others(self, value: bytes) -> bool:
        """Whether the receiver takes an event, and this one right afterwards does not."""
        if self._taken is None or self._receiver.send(self._taken).outcome is not Outcome.TAKEN:
            return False
        # it may have come back in between
        return self._receiver.send(value).outcome is Outcome.FAILED

    def _wait(self) -> float:
        self._attempts += 1
        pause = wait_before(self._attempts, RETRY_FIRST_S, RETRY_MOST_S)
        self._not_before = self._clock() + pause
        return pause

    def _leave(self) -> None:
        self._close()
        self._attempts = self._faults = 0
        self._not_before = float("-inf")

    def _close(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None


def _end(value: bytes | None) -> tuple[str, str, str] | None:
    """(run, type, time) of the end of a run; None for another event, and for what is none."""
    try:
        found = json.loads(value or b"")
        kind = str(found["eventType"])
        return (str(found["run"]["runId"]), kind, str(found["eventTime"])) if kind in ENDS else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _about(value: bytes | None) -> dict[str, str] | None:
    """The job and the run of an event, for people; None if it is none."""
    try:
        found = json.loads(value or b"")
        job = found["job"]
        return {"job": f"{job['namespace']}/{job['name']}", "run": str(found["run"]["runId"])}
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
