"""Holding the right to act: an epoch that is the latest, and a log that was heard a moment ago."""

import threading
import time
from collections.abc import Callable

import structlog

from mesh_events.emit import LogWriter, mesh_meta
from mesh_events.errors import ConfigurationError
from mesh_events.facts import Fact
from mesh_events.meta import Meta, derived_id
from mesh_events.signing import SigningKey
from processors.controllers.controller import NotLeaderError
from projections.identity import Role
from projections.image import Image

log = structlog.get_logger(__name__)
ACTOR = "mesh.controller"
LEASE_S = 3.0
"""Without news from the log for this long, this worker may have been replaced: it must not act.

For as long its successor does not act either: the one before may not have heard of it yet.
"""


def key_without_effect(name: str, public: str) -> ConfigurationError:
    """What a worker ends with whose words do not count: each of them would only be set aside."""
    return ConfigurationError(
        f"the log does not count this {name}'s key ({public}): bring back {name}.key of this mesh; "
        "if the key was changed or revoked, start the worker with the new one"
    )


def now() -> float:
    """Seconds that go on while the machine sleeps, which `time.monotonic` leaves out on Linux."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaderLease:
    """The leadership of one governor, for its controllers. Safe to use from their threads.

    Args:
        epoch: offset of the governor's start.
        writer: appends to the log.
        key: the controller's signing key.
        current: the latest image.
        asked: when Kafka was asked for the log's end that the fold stands at, by `now`.
        alone_from: when no earlier governor acts any more, by `now`: a lease after this one's
            start stood on the log. Decisions need not wait, an epoch is enough for them.
    """

    def __init__(
        self,
        epoch: int,
        writer: LogWriter,
        key: SigningKey,
        current: Callable[[], Image],
        asked: float,
        alone_from: float = 0.0,
    ) -> None:
        self._epoch, self._writer, self._key, self._current = epoch, writer, key, current
        self._over = threading.Event()
        self._renewed, self._alone_from = asked, alone_from
        self._reported = -1

    @property
    def epoch(self) -> int:
        """Offset of this governor's GovernorStarted."""
        return self._epoch

    @property
    def last_report(self) -> int:
        """Offset of the last fact that was reported, -1 before the first."""
        return self._reported

    @property
    def staleness(self) -> float:
        """Seconds since the fold was last known to stand at the end of the log."""
        return now() - self._renewed

    def end(self) -> None:
        """The log was taken away, or the worker stops."""
        self._over.set()

    def renew(self, asked: float) -> None:
        """The fold stands at the end of the log, for which Kafka was asked at `asked` of `now`.

        The answer's own age is not known: who stood still between the two may be replaced by now.
        """
        self._renewed = max(self._renewed, asked)

    @property
    def alone_in(self) -> float:
        """Seconds until no earlier governor acts any more."""
        return max(0.0, self._alone_from - now())

    def check(self) -> None:
        """Raise NotLeaderError unless this worker may act now, and no other one may."""
        self.check_leadership()
        if wait := self.alone_in:
            raise NotLeaderError(f"an earlier governor may act for another {wait:.1f} s")

    def check_leadership(self) -> None:
        """Raise NotLeaderError unless this worker leads and has heard of the log lately.

        Raises ConfigurationError if the controller's key does not count (any more).
        """
        if self._over.is_set():
            raise NotLeaderError("the log was taken away from this worker")
        image = self._current()
        if not image.identity.has_role(self._key.public, Role.CONTROLLER):
            raise key_without_effect("controller", self._key.public)
        latest = image.epoch
        if latest != self._epoch:
            raise NotLeaderError(f"a later governor started at offset {latest}")
        if (staleness := self.staleness) > LEASE_S:
            raise NotLeaderError(f"nothing heard of the log for {staleness:.1f} s")

    def report(self, fact: Fact) -> None:
        """Check, then append the fact with its texts cut; wait for Kafka's acknowledgement."""
        self.check()
        receipt = self._writer.append(fact.shortened(), self._key)
        self._reported = max(self._reported, receipt.offset)
        log.info(
            "reported",
            fact=fact.type_name(),
            key=fact.key,
            offset=receipt.offset,
            correlation_id=fact.meta.correlation,
        )

    def meta(self, cause: str, step: str, generation: int, *, correlation: str) -> Meta:
        """`meta` of a fact; the same cause, step and generation give the same event id."""
        return mesh_meta(derived_id(cause, step, generation), ACTOR, correlation, cause)
