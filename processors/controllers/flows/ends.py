"""Both ends of one flow as they are now: the topics, and whether they are the ones it knows."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

from mesh_events.errors import InfrastructureError, MeshError
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.transport import Tls
from mesh_events.references import resolve
from processors.clusters.kafka import ClusterAdmin, Topic
from processors.clusters.rights import Binding
from processors.controllers.flows import fence
from processors.controllers.flows.copy_settings import copied_settings
from processors.controllers.flows.elections import require_clean
from processors.controllers.flows.flow import F
from processors.controllers.flows.partition_limit import MOST_PARTITIONS
from processors.controllers.flows.starts import Starts
from processors.controllers.gates import Gates
from processors.registries.replication import Carried, OneRegistry
from processors.spark.error_files import ErrorFiles
from projections.image import Image
from spark_streams.errors import CopyError
from spark_streams.log import KafkaLog, PartitionLog

Clusters = Callable[[Image, str], ClusterAdmin]
Found = TypeVar("Found")
_APPEAR_TIMEOUT_S = 10.0
_POLL_S = 0.05


class Logs(Protocol):
    """Looks into topics with the operator's login of a cluster, or with any other."""

    def source(self, image: Image, cluster: str) -> PartitionLog:
        """The cluster's topics as `read_committed` sees them."""

    def destination(self, image: Image, cluster: str) -> PartitionLog:
        """The cluster's topics with all that is in them."""

    def probe(self, connection: Connection, topic: str) -> None:
        """Log in and ask for the topic's ends; raises MeshError while that is refused."""

    def close(self) -> None:
        """Leave Kafka."""


class ClusterLogs:
    """Real clusters, one `KafkaLog` that lasts per cluster and kind.

    tls: how their brokers are reached
    """

    def __init__(self, tls: Tls | None = None) -> None:
        self._tls = tls
        self._open: dict[tuple[Connection, bool], KafkaLog] = {}
        self._opening = threading.Lock()

    def source(self, image: Image, cluster: str) -> PartitionLog:
        """The cluster's topics as `read_committed` sees them."""
        return self._of(image, cluster, committed=True)

    def destination(self, image: Image, cluster: str) -> PartitionLog:
        """The cluster's topics with all that is in them."""
        return self._of(image, cluster, committed=False)

    def probe(self, connection: Connection, topic: str) -> None:
        """Log in and ask for the topic's ends; raises MeshError while that is refused."""
        log = KafkaLog(connection, timeout_s=2)
        try:
            log.bounds(topic, [0])
        finally:
            log.close()

    def close(self) -> None:
        """Leave Kafka."""
        while self._open:
            self._open.popitem()[1].close()

    def _of(self, image: Image, cluster: str, *, committed: bool) -> PartitionLog:
        found = image.identity.clusters[cluster]
        password = resolve(found.admin_password)
        login = Connection(found.bootstrap_servers, found.admin_user, password, self._tls)
        with self._opening:
            if (login, committed) not in self._open:
                self._open[login, committed] = KafkaLog(login, committed=committed)
            return self._open[login, committed]


class Reach(NamedTuple):
    """How clusters are reached: to change them, to look into topics, to have schemas there.

    errors: where the full texts of errors are kept; None: nowhere.
    most_partitions: of a topic that is read there.
    starts: where starts that are under way are noted; None: nobody else asks for them.
    gates: held while rights that hang on grants are given; None: nobody else takes them.
    """

    admin: Clusters
    logs: Logs
    schemas: Carried = OneRegistry()
    errors: ErrorFiles | None = None
    most_partitions: int = MOST_PARTITIONS
    starts: Starts | None = None
    gates: Gates | None = None


@dataclass(frozen=True, slots=True)
class Ends(Generic[F]):
    """One flow with the clusters and logs at its ends.

    The words of a refusal are a link's: `end` it, begin `anew`, or with `nothing` that it
    wrote, and `restart` it.
    """

    what: ClassVar[str] = "link"
    end: ClassVar[str] = "delete the link"
    anew: ClassVar[str] = "delete the link (which purges the copy) and create it again"
    nothing: ClassVar[str] = anew
    restart: ClassVar[str] = "pause and resume the link"

    moves: ClassVar[bool] = False
    """Whether what it reads and writes changes: its rights are then sought on the whole cluster."""

    flow: F
    source: ClusterAdmin
    destination: ClusterAdmin
    source_log: PartitionLog
    destination_log: PartitionLog

    def is_fresh(self, found: Topic | None) -> bool:
        """Whether the copy begins anew, so that nothing known of an earlier one counts.

        Without a run the link was created (again) and has not been active since; then a missing
        copy is one whose removal was under way when it was created again.
        """
        known = self.flow.destination_topic_id
        return known is None or (self.flow.run is None and (found is None or found.id != known))

    def source_topic(self, *, fresh: bool) -> Topic:
        """The source.

        Raises:
            CopyError: `source_missing`, `source_recreated` or `source_unclean`.
        """
        flow = self.flow
        found = self.source.topic(flow.source_topic)
        place = f"the topic {flow.source_topic} on cluster {flow.source_cluster}"
        if found is None:
            raise CopyError(
                "source_missing", f"{place} does not exist: create it again, or {self.end}"
            )
        if not fresh and flow.source_topic_id not in (None, found.id):
            raise CopyError(
                "source_recreated",
                f"{place} was deleted and made again, so that its offsets mean something else: "
                f"{self.anew}",
            )
        require_clean(found, self.source.name, self.nothing, self.restart)
        return found

    def destination_topic(self) -> Topic | None:
        """The copy, None if it is still to be made.

        Raises:
            CopyError: `destination_lost` or `destination_foreign`.
        """
        flow = self.flow
        found = self.destination.topic(flow.topic)
        place = f"the topic {flow.topic} on cluster {flow.cluster}"
        fresh = self.is_fresh(found)
        if found is None:
            if fresh:
                return None
            raise CopyError(
                "destination_lost",
                f"{place} was deleted: {self.anew}",
            )
        if not fresh and found.id != flow.destination_topic_id:
            raise CopyError(
                "destination_lost",
                f"{place} was deleted and made again: find out by whom, delete it, "
                f"then {self.anew}",
            )
        if fresh:
            marks = self._marks()
            if not marks.ours:
                raise CopyError(
                    "destination_foreign",
                    f"{place} was not made by the mesh and is never overwritten: rename or delete "
                    f"it, then {self.restart}",
                )
            self._require_alone(marks)
        return found

    def _require_alone(self, marks: fence.Marks) -> None:
        """Raise `destination_foreign` where another link has marked the copy's name as its own."""
        if marks.others:
            raise CopyError(
                "destination_foreign",
                f"another {self.what} makes the topic {self.flow.topic} on cluster "
                f"{self.flow.cluster}, two would fill one topic: {self.end}, or the other one",
            )

    def _marks(self) -> fence.Marks:
        return fence.marks(self.destination, self.flow.topic, self.flow.id)

    def is_claimed(self) -> bool:
        """Whether the mesh has marked the destination's name as its own."""
        return self._marks().ours

    def fenced(self, topics: tuple[str, ...]) -> tuple[str | None, ...]:
        """Where the rights of its incarnations are to be withdrawn; None: wherever they are."""
        return (None,) if self.moves else topics

    @property
    def tail_log(self) -> PartitionLog:
        """Where the last records of the destination are looked up."""
        return self.destination_log

    def more_rights(self, writer: str) -> tuple[list[Binding], list[Binding]]:
        """What an incarnation needs beside reading and writing, at the source and at the copy."""
        del writer
        return [], []

    def carry_schemas(self, *, anew: bool = False) -> None:
        """Let readers at the destination find the schemas' ids; most write what is known there.

        anew: also what was carried before is looked at again.
        """
        del anew

    def end_transactions(self, keep: str | None = None) -> None:
        """End what incarnations but `keep` have left open; most write without transactions.

        Called when they may not write any more, and before their rights are forgotten.
        """
        del keep

    def settle(self, partitions: int, quiet_s: float) -> None:
        """Wait until nothing lands any more in what the flow writes.

        Raises:
            InfrastructureError: something still does.
        """
        for topic in self.flow.writes:
            fence.settle(self.destination_log, topic, partitions, quiet_s)

    def is_complete(self) -> bool:
        """Whether everything else that the flow writes is there, once its destination is."""
        return True

    def make_destination(self, source: Topic) -> Topic:
        """Make the copy's topic as the source's is, and wait until the cluster shows it."""
        name = self.flow.topic
        self.destination.create_topic(name, source.partitions, copied_settings(source.config))
        # that a topic exists is no error above: it may be another's, who came a moment before
        self._require_alone(self._marks())
        return until(lambda: self.destination.topic(name), f"the new topic {name} to appear")

    def add_partitions(self, partitions: int, check: Callable[[], None]) -> Topic:
        """Give what the flow writes as many partitions as the source has; see that they are there.

        Called while nobody can write there. More partitions than that are left: Kafka removes none.
        """
        found = [self._widened(name, partitions, check) for name in self.flow.writes]
        return found[0]

    def _widened(self, name: str, partitions: int, check: Callable[[], None]) -> Topic:
        def seen() -> Topic | None:
            found = self.destination.topic(name)
            return found if found is not None and found.partitions >= partitions else None

        before = seen()
        if before is not None:
            return before
        check()
        self.destination.add_partitions(name, partitions)
        return until(seen, f"{name} to have {partitions} partitions")


def until(
    look: Callable[[], Found | None], what: str, timeout_s: float = _APPEAR_TIMEOUT_S
) -> Found:
    """Look until there is something; raises InfrastructureError after `timeout_s` seconds.

    A topic that appears or goes away is half there for a moment, and looking at it may fail.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        fault: InfrastructureError | None = None
        try:
            found = look()
        except InfrastructureError as error:
            found, fault = None, error
        if found is not None:
            return found
        if time.monotonic() > deadline:
            raise InfrastructureError(
                f"waited {timeout_s:g} s for {what}", retriable=True
            ) from fault
        time.sleep(_POLL_S)


def allowed(logs: Logs, connection: Connection, topic: str) -> None:
    """Wait until a new principal can log in and sees the topic; raises what Kafka says last."""
    deadline = time.monotonic() + _APPEAR_TIMEOUT_S
    while True:
        try:
            logs.probe(connection, topic)
        except MeshError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)
        else:
            return
