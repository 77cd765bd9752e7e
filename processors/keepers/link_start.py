"""Starting one incarnation of a link, in the only order that is exact.

Right on the source, topic, fence, tail, right on the destination, query, fact. Each effect may be
the last one before a crash: the next attempt takes a new principal, and begins by closing the
fence around whatever the earlier ones may still do.
"""

import secrets
from collections.abc import Mapping

from processors.clusters import Topic
from processors.crash_points import crash_point
from processors.keepers import fence
from processors.keepers.keeper import Reign
from processors.keepers.link_ends import Ends, Logs, allowed, max_record_bytes
from processors.keepers.link_telling import Started, Telling
from processors.rights import reader
from spark_streams.engine import CopySpec, LinkEngine
from spark_streams.provenance import Origin
from spark_streams.resume import start_positions
from spark_streams.tail import read_tail


class LinkStart:
    """Starts links.

    Args:
        engine: runs the copies.
        logs: looks into topics.
        quiet_s: for how long a fenced destination has to stand still, seconds.
    """

    def __init__(self, engine: LinkEngine, logs: Logs, quiet_s: float) -> None:
        self._engine, self._logs, self._quiet_s = engine, logs, quiet_s

    def start(self, ends: Ends, telling: Telling, reign: Reign) -> None:
        """Start the next incarnation from the copy's tail, and report LinkActivated.

        Raises:
            CopyError: why this copy cannot run.
            MeshError: a cluster does not answer.
        """
        link = ends.link
        destination = ends.destination_topic()
        fresh = ends.is_fresh(destination)
        source = ends.source_topic(fresh=fresh)
        origin = Origin(link.source_cluster, source.id)
        writer = fence.fresh_writer(link.id)

        reign.check()
        self._engine.stop(link.id)
        self._admit(ends, writer, reign)
        if destination is None:
            reign.check()
            destination = ends.make_destination(source)
        self._shut(ends, writer, destination, reign)
        crash_point("link-after-fence")

        tails = read_tail(ends.destination_log, link.topic, destination.partitions, origin)
        floor = {} if fresh else {int(p): offset for p, offset in link.positions.items()}
        bounds = ends.source_log.bounds(link.source_topic, range(source.partitions))
        positions = start_positions(tails, floor, bounds)
        crash_point("link-after-tail")

        spec = self._open(ends, writer, destination, origin, positions, reign)
        crash_point("link-after-grant")
        reign.check()
        self._engine.start(spec)
        crash_point("link-after-start")
        telling.activated(Started(link.incarnation + 1, writer, source, destination, positions))

    def _admit(self, ends: Ends, writer: str, reign: Reign) -> None:
        """Rights that harm nothing come first: by them a lost principal is found again."""
        link = ends.link
        reign.check()
        ends.source.grant(sorted(reader(writer, link.source_topic)))
        reign.check()
        ends.destination.grant([fence.claim(writer, link.topic)])

    def _shut(self, ends: Ends, writer: str, destination: Topic, reign: Reign) -> None:
        """End every earlier incarnation, and wait until nothing of it lands any more."""
        link = ends.link
        fence.retire(ends.source, link.source_topic, link.id, reign.check, keep=writer)
        fence.retire(ends.destination, link.topic, link.id, reign.check, keep=writer)
        fence.settle(ends.destination_log, link.topic, destination.partitions, self._quiet_s)

    def _open(
        self,
        ends: Ends,
        writer: str,
        destination: Topic,
        origin: Origin,
        positions: Mapping[int, int],
        reign: Reign,
    ) -> CopySpec:
        """Let the new principal in at both ends, and wait until Kafka does."""
        link = ends.link
        # known to Kafka and to the engine only: a later incarnation gets its own
        passwords = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        reign.check()
        ends.source.set_password(writer, passwords[0])
        reign.check()
        ends.destination.set_password(writer, passwords[1])
        reign.check()
        ends.destination.grant([fence.writing(writer, link.topic)])
        spec = CopySpec(
            link=link.id,
            writer=writer,
            source=ends.source.connection(writer, passwords[0]),
            source_topic=link.source_topic,
            origin=origin,
            destination=ends.destination.connection(writer, passwords[1]),
            destination_topic=link.topic,
            start=positions,
            max_record_bytes=max_record_bytes(destination),
        )
        allowed(self._logs, spec.source, link.source_topic)
        allowed(self._logs, spec.destination, link.topic)
        return spec
