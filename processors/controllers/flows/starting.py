"""Starting one incarnation of a flow, in the only order that is exact.

Room in the engine, right on the sources, topics, fence, partitions, tail, right on the
destination, query, fact. Each effect may be the last one before a crash: the next attempt begins by
closing the fence around whatever the earlier ones may still do. It takes a new principal if the
engine may know the last one's password.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Generic

from processors.clusters.kafka import Topic
from processors.clusters.rights import Binding, reader
from processors.controllers.controller import Leadership
from processors.controllers.flows import fence
from processors.controllers.flows.copy_settings import max_record_bytes
from processors.controllers.flows.ends import Ends, Logs, allowed
from processors.controllers.flows.flow import F, Kind, Plan, Reporter, Started
from processors.controllers.flows.starts import Starts
from processors.controllers.gates import Gates
from processors.crash_points import crash_point
from spark_streams.engine import CopySpec, FlowEngine
from spark_streams.errors import ENGINE_FULL, EngineError
from spark_streams.provenance import Origin


class FlowStart(Generic[F]):
    """Starts flows of one kind.

    Args:
        kind: what is done on the way.
        engine: runs the queries.
        logs: looks into topics.
        quiet_s: for how long a fenced destination has to stand still, seconds.
        starts: where it is noted as whom a start writes.
        gates: held while it is let in at the source.
    """

    def __init__(
        self,
        kind: Kind[F],
        engine: FlowEngine,
        logs: Logs,
        quiet_s: float,
        starts: Starts,
        gates: Gates,
    ) -> None:
        self._kind: Kind[F] = kind
        self._engine, self._logs, self._quiet_s = engine, logs, quiet_s
        self._starts, self._gates = starts, gates
        # flow -> principal of an attempt that ended before the engine had it
        self._unused: dict[str, str] = {}

    def start(
        self,
        ends: Ends[F],
        reporter: Reporter[F],
        leadership: Leadership,
        handed_over: Callable[[], None],
    ) -> Started:
        """Start the next incarnation from the destination's tail, and report that it runs.

        Args:
            ends: the flow with its clusters.
            reporter: reports it.
            leadership: under which it is started.
            handed_over: called once the engine may have the principal's password.

        Raises:
            CopyError: why this flow cannot run.
            MeshError: a cluster does not answer.
        """
        flow = ends.flow
        destination = ends.destination_topic()
        fresh = ends.is_fresh(destination)
        source = ends.source_topic(fresh=fresh)
        self._kind.require_size(ends, source)
        origin = Origin(flow.source_cluster, source.id)
        plan = self._kind.plan(ends)
        writer = self._unused.setdefault(flow.id, fence.fresh_writer(flow.id))

        leadership.check()
        self._engine.stop(flow.id)
        # before any topic or right is changed; the engine asks once more at the start
        self._engine.require_room(flow.id, source.partitions)
        self._starts.begin(flow.id, writer)
        self._admit(ends, writer, leadership)
        if destination is None or not ends.is_complete():
            leadership.check()
            destination = ends.make_destination(source)
        self._shut(ends, writer, destination, leadership)
        self._starts.keep(flow.id, writer)
        destination = ends.add_partitions(source.partitions, leadership.check)
        crash_point(f"{self._kind.name}-after-fence")

        positions = plan.start(ends, source, destination, origin, fresh=fresh)
        crash_point(f"{self._kind.name}-after-tail")

        spec = self._open(ends, writer, destination, origin, positions, plan, leadership)
        crash_point(f"{self._kind.name}-after-grant")
        self._kind.require_still(flow)
        leadership.check()
        self._launch(spec, handed_over)
        crash_point(f"{self._kind.name}-after-start")
        started = Started(flow.incarnation + 1, writer, source, destination, positions, plan)
        reporter.activated(started)
        return started

    def _launch(self, spec: CopySpec, handed_over: Callable[[], None]) -> None:
        """Hand it to the engine; a principal that was handed over is never used again."""
        kept = False
        try:
            self._engine.start(spec)
        except EngineError as fault:
            # asked for before anything is handed over
            kept = fault.code == ENGINE_FULL
            raise
        finally:
            if not kept:
                del self._unused[spec.link]
                handed_over()

    def _admit(self, ends: Ends[F], writer: str, leadership: Leadership) -> None:
        """Rights that harm nothing come first: by them a lost principal is found again."""
        flow = ends.flow
        more_there, more_here = ends.more_rights(writer)
        reading: set[Binding] = {right for topic in flow.reads for right in reader(writer, topic)}
        claims: list[Binding] = [fence.claim(writer, topic) for topic in flow.writes]
        with self._gates(flow.source_cluster):
            # planning took its time: what was revoked meanwhile is not given again
            self._kind.require_still(flow)
            leadership.check()
            ends.source.grant(sorted(reading.union(more_there)))
        leadership.check()
        ends.destination.grant(claims + more_here)

    def _shut(self, ends: Ends[F], writer: str, destination: Topic, leadership: Leadership) -> None:
        """End every earlier incarnation, and wait until nothing of it lands any more."""
        flow = ends.flow
        for written in flow.writes:
            fence.close(ends.destination, written, flow.id, leadership.check)
        ends.end_transactions(keep=writer)
        for topic in ends.fenced(flow.reads):
            fence.retire(ends.source, topic, flow.id, leadership.check, keep=writer)
        for topic in ends.fenced(flow.writes):
            fence.retire(ends.destination, topic, flow.id, leadership.check, keep=writer)
        ends.settle(destination.partitions, self._quiet_s)

    def _open(
        self,
        ends: Ends[F],
        writer: str,
        destination: Topic,
        origin: Origin,
        positions: Mapping[int, int],
        plan: Plan,
        leadership: Leadership,
    ) -> CopySpec:
        """Let the new principal in at both ends, and wait until Kafka does."""
        flow = ends.flow
        # known to Kafka and to the engine only: a later incarnation gets its own
        passwords: dict[str, str] = {}
        for admin in (ends.source, ends.destination):
            if admin.name not in passwords:
                passwords[admin.name] = secrets.token_urlsafe(24)
                leadership.check()
                admin.set_password(writer, passwords[admin.name])
        leadership.check()
        ends.destination.grant([fence.writing(writer, topic) for topic in flow.writes])
        login = ends.source.connection(writer, passwords[flow.source_cluster])
        spec = CopySpec(
            link=flow.id,
            writer=writer,
            source=login,
            source_topic=flow.source_topic,
            origin=origin,
            destination=ends.destination.connection(writer, passwords[flow.cluster]),
            destination_topic=flow.topic,
            start=positions,
            max_record_bytes=max_record_bytes(destination),
            work=plan.work(writer, login),
        )
        for topic in flow.reads:
            allowed(self._logs, spec.source, topic)
        for topic in flow.writes:
            allowed(self._logs, spec.destination, topic)
        return spec
