"""What links and statements have in common: data that flows from one topic into another.

A flow is desired by the log, runs in an engine as one query, writes as a principal of its own for
each start, and reports where it stands. `flows` keeps them; what differs is the flow's `Kind`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mesh_events.kafka.connection import Connection
from processors.clusters.kafka import Topic
from processors.controllers.controller import Leadership
from projections.image import Image
from projections.links import Link
from projections.statements import Statement
from spark_streams.engine import Work
from spark_streams.errors import CopyError
from spark_streams.log import Ahead
from spark_streams.provenance import Origin

if TYPE_CHECKING:
    from processors.controllers.flows.ends import Ends


F = TypeVar("F", Link, Statement)
"""A link or a statement.

`reads` begins with `source_topic`, `writes` with `topic`. `positions` are source offsets before
which everything is in the destination.
"""
F_co = TypeVar("F_co", Link, Statement, covariant=True)


@dataclass(frozen=True, slots=True)
class Started:
    """One incarnation that was started, as the log is told."""

    incarnation: int
    writer: str
    source: Topic
    destination: Topic
    positions: Mapping[int, int]
    plan: "Plan"


class Reporter(Protocol[F_co]):
    """What a controller says about one flow during one look at it."""

    @property
    def flow(self) -> F_co:
        """What it is about."""

    @property
    def image(self) -> Image:
        """The state in which it was looked at."""

    @property
    def leadership(self) -> Leadership:
        """Under which it is said."""

    def activated(self, started: Started) -> None:
        """It runs."""

    def began(self, started: Started) -> None:
        """The log counts that it runs; for the lineage only."""

    def goes_on(self) -> None:
        """It still runs; for the lineage only."""

    def advanced(self, positions: Mapping[int, int], source_ends: Mapping[int, int]) -> None:
        """Everything before `positions` is in the destination.

        source_ends: what `Kind.news` gave, {} if nothing.
        """

    def stopped(self, positions: Mapping[int, int]) -> None:
        """It stands still as desired, and the fence is closed."""

    def failed(self, fault: CopyError) -> None:
        """It cannot run; said once, as long as the log says the same already."""


class Plan(Protocol):
    """What is to be done on the way, as one start has found it out."""

    def start(
        self, ends: "Ends[Any]", source: Topic, destination: Topic, origin: Origin, *, fresh: bool
    ) -> Mapping[int, int]:
        """Partition -> source offset to read from, behind what the destination has.

        Called while nobody can write there. Raises CopyError where that cannot be told.
        """

    def work(self, writer: str, login: Connection) -> Work | None:
        """What is done with each record, None for a copy; `login` is the writer's at the source."""

    def more(self) -> Mapping[str, Any]:
        """What else the log is told of this start."""


class Kind(Protocol[F]):
    """What makes a link a link and a statement a statement. Methods may raise MeshError."""

    name: str
    lanes: int
    """How many flows of one queue are looked at side by side."""

    def queue(self, flow: F) -> str:
        """Flows of one queue wait for the same servers."""

    def reporter(self, flow: F, image: Image, leadership: Leadership) -> Reporter[F]:
        """Speaks about the flow."""

    def ends(self, flow: F, image: Image) -> "Ends[F]":
        """Connects both ends."""

    def withheld(self, flow: F, image: Image) -> CopyError | None:
        """Why the flow may not run now, though it is desired; None if it may."""

    def require_still(self, flow: F) -> None:
        """Raise CopyError if the latest word of the log is that the flow may not run.

        Called before its rights are given, and when they are there and nothing was read yet: what
        was decided since a start began must not be read under.
        """

    def require_size(self, ends: "Ends[F]", source: Topic) -> None:
        """Raise CopyError `too_many_partitions` where what is read has too many.

        Called before anything is changed for a start.
        """

    def has_new_partitions(self, ends: "Ends[F]") -> bool:
        """Whether the source has partitions that the flow was not started with.

        Of a running flow; raises CopyError if the source is not the known one.
        """

    def plan(self, ends: "Ends[F]") -> Plan:
        """What is to be done on the way. Raises CopyError where that is not possible."""

    def reached(self, ends: "Ends[F]") -> dict[int, int]:
        """Partition -> source offset before which everything is in the destination.

        Of a running flow; raises CopyError if a topic is not the known one.
        """

    def news(
        self, ends: "Ends[F]", reached: Mapping[int, int], ahead: Mapping[int, Ahead]
    ) -> Mapping[int, int] | None:
        """What the log is to be told at once of a running flow that has come so far; else None.

        `ahead`: what its source has still to be read, by partition.
        Partition -> source offset up to which a copy has to come to be filled, {} if that stays.
        """

    def patience_s(self, flow: F, stall_s: float) -> float:
        """For how long a partition may stand still though there is more to read, seconds."""
