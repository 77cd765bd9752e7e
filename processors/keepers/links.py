"""The links keeper: every link copies, stands still or is gone, as the log says."""

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from mesh_events.kafka import Connection
from processors.clusters import Topic
from processors.keepers.flow_ends import Clusters, Ends, Logs
from processors.keepers.flow_pace import Pace
from processors.keepers.flows import Flows
from processors.keepers.keeper import Reign
from processors.keepers.lanes import Lanes
from processors.keepers.link_end import LinkEnd
from processors.keepers.link_telling import Telling
from processors.lineage import Lineage
from projections.image import Image
from projections.links import Link
from spark_streams.engine import FlowEngine
from spark_streams.errors import CopyError
from spark_streams.provenance import Origin
from spark_streams.resume import start_positions
from spark_streams.tail import positions, read_tail

LANES_PER_PAIR = 4
"""So many links between the same two clusters are started, watched and ended at the same time."""


class LinksKeeper:
    """Keeps the links.

    Args:
        clusters: the admin of a registered cluster.
        logs: looks into the topics of the clusters.
        engine: runs the copies.
        lineage: where each incarnation is told.
        schema_text: the schema with an id, for the lineage.
        pace: how often and how long.
        lanes: links between other clusters are kept side by side.
    """

    name = "links"

    def __init__(
        self,
        clusters: Clusters,
        logs: Logs,
        engine: FlowEngine,
        lineage: Lineage,
        schema_text: Callable[[int], str],
        pace: Pace | None = None,
        lanes: Lanes | None = None,
    ) -> None:
        pace, kind = pace or Pace(), Copying(clusters, logs, lineage, schema_text)
        self._logs = logs
        self._flows = Flows(kind, LinkEnd(kind, engine, pace.quiet), engine, logs, pace, lanes)

    def reconcile(self, image: Image, reign: Reign) -> None:
        """Compare and repair every link once."""
        if image.links:
            self._flows.reconcile(image.links.values(), image, reign)

    def close(self) -> None:
        """Leave the engine and the clusters; the copies go on."""
        self._flows.close()
        self._logs.close()


class Copying:
    """What makes a flow a link: it copies a product into another cluster, as it is."""

    name = "link"

    def __init__(
        self, clusters: Clusters, logs: Logs, lineage: Lineage, schema_text: Callable[[int], str]
    ) -> None:
        self._clusters, self._logs = clusters, logs
        self._lineage, self._schema_text = lineage, schema_text

    def lane(self, link: Link) -> str:
        """Links between the same clusters share a few lanes, always the same one for a link."""
        number = zlib.crc32(link.id.encode()) % LANES_PER_PAIR
        return f"{link.source_cluster}>{link.cluster}/{number}"

    def voice(self, link: Link, image: Image, reign: Reign) -> Telling:
        """Speaks about the link."""
        return Telling(link, image, reign, self._lineage, self._schema_text)

    def ends(self, link: Link, image: Image) -> Ends[Link]:
        """Connects both clusters."""
        return Ends(
            link,
            self._clusters(image, link.source_cluster),
            self._clusters(image, link.cluster),
            self._logs.source(image, link.source_cluster),
            self._logs.destination(image, link.cluster),
        )

    def withheld(self, link: Link, image: Image) -> CopyError | None:
        """Nothing holds a link that the log wants: it ends with its last grant."""
        del link, image
        return None

    def require_still(self, link: Link) -> None:
        """Nothing to ask: a grant's end is followed by the link's, and by the copy's."""

    def plan(self, ends: Ends[Link]) -> "CopyPlan":
        """Records are copied as they are."""
        del ends
        return CopyPlan()

    def reached(self, ends: Ends[Link]) -> dict[int, int]:
        """Partition -> next source offset, from the copy's tail."""
        link, source = ends.flow, ends.source_topic(fresh=False)
        ends.destination_topic()
        origin = Origin(link.source_cluster, source.id)
        return positions(read_tail(ends.destination_log, link.topic, source.partitions, origin))

    def patience_s(self, link: Link, stall_s: float) -> float:
        """Every record of the source comes out."""
        del link
        return stall_s


class CopyPlan:
    """What one start of a link has found out."""

    def start(
        self, ends: Ends[Link], source: Topic, destination: Topic, origin: Origin, *, fresh: bool
    ) -> Mapping[int, int]:
        """Behind the copy's tail; a fresh copy begins at the source's beginning."""
        link = ends.flow
        tails = read_tail(ends.destination_log, link.topic, destination.partitions, origin)
        floor = {} if fresh else {int(p): offset for p, offset in link.positions.items()}
        bounds = ends.source_log.bounds(link.source_topic, range(source.partitions))
        return start_positions(tails, floor, bounds)

    def work(self, writer: str, login: Connection) -> None:
        """Nothing is done with a record."""
        del writer, login

    def more(self) -> Mapping[str, Any]:
        """Nothing else is told."""
        return {}
