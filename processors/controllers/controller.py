"""What a controller is, and what it may use."""

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import extract_tb
from typing import Protocol

import structlog

from mesh_events.errors import InfrastructureError, MeshError
from mesh_events.facts import Fact
from mesh_events.meta import Meta
from projections.image import Image

log = structlog.get_logger(__name__)


class NotLeaderError(Exception):
    """This worker no longer leads: whatever was planned on its image must not be done."""


@contextmanager
def guarded(server: str) -> Iterator[None]:
    """What nobody expected is an error of the server that is worked on, and ends no worker.

    Raises:
        InfrastructureError: with the kind of the error; its text may quote what the server said.
    """
    try:
        yield
    except (MeshError, NotLeaderError):
        raise
    except Exception as error:
        kind, frames = type(error).__name__, extract_tb(error.__traceback__)
        place = f"{frames[-1].filename}:{frames[-1].lineno}"
        # not its text, which may quote a record: this log can be sent elsewhere
        log.error("server_not_understood", server=server, error=kind, place=place)  # noqa: TRY400
        what = f"{server}: {kind}; tried again, the worker's log names the place"
        raise InfrastructureError(what, retriable=True) from error


class Leadership(Protocol):
    """The right to act: held while this worker owns the log and its epoch is the latest."""

    @property
    def epoch(self) -> int:
        """Offset of this governor's GovernorStarted."""

    @property
    def last_report(self) -> int:
        """Offset of the last fact that was reported under this leadership, -1 before the first."""

    def check(self) -> None:
        """Raise NotLeaderError if another governor has started or the log was taken away."""

    def report(self, fact: Fact) -> None:
        """Check, then append the fact with its texts cut; wait for Kafka's acknowledgement.

        Raises RefusedError `too_large` for a fact that nobody would read; nothing is appended.
        """

    def meta(self, cause: str, step: str, generation: int, *, correlation: str) -> Meta:
        """`meta` of a fact; the same cause, step and generation give the same event id.

        Args:
            cause: id of the event, or name of the thing, that made this necessary.
            step: which effect, such as `acl-applied`.
            generation: the generation that the fact satisfies.
            correlation: id of the conversation it belongs to.
        """


class Controller(Protocol):
    """One concern of the world."""

    name: str

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Compare and repair once. Runs in a thread of its own, never twice at the same time.

        Called with the latest image whenever it changed and every few seconds; the image holds
        every fact that this controller reported before. Expected failures are reported as facts and
        tried again at the next call; anything else raised here ends the worker.
        """
