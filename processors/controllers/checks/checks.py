"""The checks controller: looks at the world for intents that wait, and says what it found."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from mesh_events.connectors import Configured, ConnectorAdded, ConnectorUpdated
from mesh_events.errors import MeshError, RefusedError
from mesh_events.facts import CheckFailed, CheckPassed
from mesh_events.intents import (
    AccessGranted,
    ClusterRegistered,
    Intent,
    ProductPublished,
    ProductUpdated,
    domain_of,
)
from mesh_events.kafka.transport import Tls
from mesh_events.record import FaultCode
from mesh_events.schema.registry import Registry
from mesh_events.statements import Begin, StatementAdded, StatementUpdated, Wording
from processors.clusters.kafka import ClusterAdmin
from processors.connect.connects import Connects
from processors.controllers.checks.findings import (
    Finding,
    cluster_reachable,
    connector_sound,
    destination_free,
    edges,
    schema_registered,
    statement_sound,
    target_free,
    too_many_partitions,
    topic_exists,
)
from processors.controllers.controller import Leadership, NotLeaderError
from processors.controllers.flows import fence
from processors.controllers.flows.ends import Logs
from processors.controllers.flows.partition_limit import (
    OF_LINKS,
    OF_STATEMENTS,
    Most,
    PartitionLimit,
)
from processors.controllers.lanes import Job, Lanes, SerialLanes, for_a_while
from processors.governor.waiting import Awaited
from projections.catalog import SCHEMA_REGISTERED
from projections.image import Image
from projections.rules.access import TARGET_FREE
from projections.rules.catalog import TOPIC_EXISTS
from projections.rules.connectors import CONNECTOR_SOUND
from projections.rules.identity import CLUSTER_REACHABLE
from projections.statements import DESTINATION_FREE, END_OF, STATEMENT_SOUND

log = structlog.get_logger(__name__)
CHECKED = (
    ClusterRegistered,
    ProductPublished,
    ProductUpdated,
    AccessGranted,
    StatementAdded,
    StatementUpdated,
    ConnectorAdded,
    ConnectorUpdated,
)
"""Intents that may wait for the world; thousands of others may be undecided beside them."""
CHECK_TOO_LARGE = "check_too_large"
MOST = 64
"""So many records of a domain are looked at in one round."""
Clusters = Callable[[Image, str], ClusterAdmin]


@dataclass(frozen=True, slots=True)
class Task:
    """One check to be made for the waiting intent at `offset`."""

    offset: int
    check: str
    intent: Intent


class Servers(NamedTuple):
    """What checks ask beside the registered clusters and the registry.

    tls: how a new cluster's brokers are reached.
    logs: reads the ends of topics.
    connects: the Connect cluster of each domain, which validates its connectors.
    """

    tls: Tls | None = None
    logs: Logs | None = None
    connects: Connects = Connects()


class ChecksController:
    """Runs each missing check of each waiting intent; a server that is down is asked again.

    Each domain has a lane of its own for each server: neither a server that does not answer, nor a
    domain that says very much or whose check takes long, holds up the others.

    Args:
        clusters: gives a cluster's admin.
        registry: where schemas are looked up.
        waiting: offset -> what the governor found a record waiting for.
        lanes: runs the checks side by side.
        servers: what is asked beside the clusters and the registry.
        most: partitions of a topic that a link or a statement may read.
    """

    name = "checks"

    def __init__(
        self,
        clusters: Clusters,
        registry: Registry,
        waiting: Callable[[], Mapping[int, Awaited]],
        lanes: Lanes | None = None,
        servers: Servers | None = None,
        most: Most | None = None,
    ) -> None:
        most = most or Most()
        self._of_links = PartitionLimit(most.links, OF_LINKS)
        self._of_statements = PartitionLimit(most.statements, OF_STATEMENTS)
        self._clusters, self._registry, self._lanes = clusters, registry, lanes or SerialLanes()
        self._waiting = waiting
        self._tls, self._logs, self._connects = servers or Servers()
        # (offset, check) -> since when it fails, s of the monotonic clock
        self._failing: dict[tuple[int, str], float] = {}

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Look at the world for waiting intents, some of each domain."""
        # a copy: lanes that are busy change it meanwhile
        for over in [one for one in list(self._failing) if one[0] not in image.intents.undecided]:
            self._failing.pop(over, None)
        lanes: dict[str, list[Task]] = {}
        for task in missing(image, self._waiting()):
            lanes.setdefault(_lane(task, image), []).append(task)

        def job(tasks: list[Task]) -> Job:
            return lambda: self._work(tasks, image, leadership)

        self._lanes.run({name: job(tasks) for name, tasks in lanes.items()}, image, leadership)

    def _work(self, tasks: Iterable[Task], image: Image, leadership: Leadership) -> None:
        """Make checks for a while; what is left comes with the next, fresher image."""
        for task in for_a_while(tasks):
            self._run(task, image, leadership)

    def _run(self, task: Task, image: Image, leadership: Leadership) -> None:
        intent = task.intent
        try:
            finding = self._look(task.check, image, intent)
        except NotLeaderError:
            raise
        except Exception as error:
            # one intent must not hold up all the others, whatever is wrong with it
            self._failing.pop((task.offset, task.check), None)
            if not isinstance(error, MeshError):
                log.exception("check_broken", check=task.check, offset=task.offset)
            log.warning(
                "check_not_possible", check=task.check, offset=task.offset, error=str(error)
            )
            return
        if finding.code:
            since = self._failing.setdefault((task.offset, task.check), time.monotonic())
            if time.monotonic() - since < finding.certain_s:
                return
        try:
            self._report(task, finding, leadership)
        except (MeshError, NotLeaderError):
            raise
        except Exception:
            # nor must what was found of it
            log.exception("check_broken", check=task.check, offset=task.offset)

    def _report(self, task: Task, finding: Finding, leadership: Leadership) -> None:
        intent, step = task.intent, f"check-{task.check}"
        meta = leadership.meta(
            intent.meta.id, step, task.offset, correlation=intent.meta.correlation
        )
        common = {"meta": meta, "offset": task.offset, "check": task.check}
        common["evidence"] = finding.evidence
        try:
            if finding.code:
                leadership.report(CheckFailed(**common, code=finding.code, reason=finding.reason))
            else:
                leadership.report(CheckPassed(**common))
        except RefusedError as error:
            if error.code != FaultCode.TOO_LARGE:
                raise
            # without an outcome the check would be made again and again
            common["evidence"] = {}
            leadership.report(CheckFailed(**common, code=CHECK_TOO_LARGE, reason=str(error)))

    def _look(self, check: str, image: Image, intent: Intent) -> Finding:
        match check, intent:
            case (name, ClusterRegistered()) if name == CLUSTER_REACHABLE:
                return cluster_reachable(intent, self._tls)
            case (name, ProductPublished() | ProductUpdated()) if name == TOPIC_EXISTS:
                home = image.identity.domains[domain_of(intent.product)].cluster
                return topic_exists(_topic_of(image, intent), self._clusters(image, home))
            case (name, ProductPublished() | ProductUpdated()) if name == SCHEMA_REGISTERED:
                return schema_registered(_topic_of(image, intent), self._registry)
            case (name, AccessGranted()) if name == TARGET_FREE:
                return self._target_free(image, intent)
            case (name, Wording()) if name == STATEMENT_SOUND:
                return self._statement_sound(image, intent)
            case (name, StatementAdded()) if name == DESTINATION_FREE:
                home = image.identity.domains[domain_of(intent.statement)].cluster
                before = image.statements.get(intent.statement)
                logs = self._logs
                return destination_free(
                    intent,
                    self._clusters(image, home),
                    before,
                    logs.source(image, home) if logs is not None else None,
                    logs.destination(image, home) if logs is not None else None,
                )
            case (name, Configured()) if name == CONNECTOR_SOUND:
                domain = domain_of(intent.connector)
                admin = self._clusters(image, image.identity.domains[domain].cluster)
                return connector_sound(intent, admin, self._connects.of(domain))
        return Finding(code="unknown_check", reason=f"this mesh has no check {check}")

    def _target_free(self, image: Image, intent: AccessGranted) -> Finding:
        access = image.access.requests[intent.request]
        link = image.links.get(access.link or "")
        known = link.destination_topic_id if link is not None else None
        admin = self._clusters(image, access.cluster)
        # an earlier grant's copy is being made: its mark is older than the topic
        made = link is not None and known is None and fence.marks(admin, access.topic, link.id).ours
        free = target_free(access.topic, known, admin, being_made=made)
        if free.code:
            return free
        # the link that follows would not start
        product = image.catalog[access.product]
        source = self._clusters(image, product.cluster).topic(product.topic)
        return too_many_partitions([source], product.cluster, self._of_links) or free

    def _statement_sound(self, image: Image, intent: Wording) -> Finding:
        """The text can be understood over the topics that it names; see `statement_sound`."""
        home = image.identity.domains[domain_of(intent.statement)].cluster
        known = image.statements.get(intent.statement)
        destination = intent.destination if isinstance(intent, StatementAdded) else ""
        if not destination and known is not None:
            destination = known.destination
        admin = self._clusters(image, home)
        before = known.sql if known is not None and isinstance(intent, StatementUpdated) else None
        limit = self._of_statements
        found = statement_sound(intent, destination, admin, self._registry, before, limit)
        if found.code or not isinstance(intent, StatementAdded) or self._logs is None:
            return found
        if intent.begin is not Begin.LATEST:
            return found
        stream, partitions = self._logs.source(image, home), int(found.evidence["partitions"])
        return Finding(found.evidence | edges(END_OF, intent.stream, partitions, stream, 1))


def missing(image: Image, waiting: Mapping[int, Awaited]) -> Iterator[Task]:
    """The checks that records wait for and have no outcome yet: of each domain the oldest records.

    What the image does not hold yet, though it was found with it, comes with a later image.
    """
    counts = Counter[str]()
    for offset in sorted(waiting):
        entry, awaited = image.intents.undecided.get(offset), waiting[offset]
        if entry is None or not isinstance(entry.event, CHECKED) or awaited.behind > image.offset:
            continue
        domain = entry.event.meta.domain
        counts[domain] += 1
        outcomes = image.intents.checks.get(offset, ())
        for check in awaited.checks if counts[domain] <= MOST else ():
            if check not in outcomes:
                yield Task(offset, check, entry.event)


def _topic_of(image: Image, intent: ProductPublished | ProductUpdated) -> str:
    """The topic that an intent offers; that of an update is in the catalog."""
    if isinstance(intent, ProductPublished):
        return intent.topic
    return image.catalog[intent.product].topic


def _lane(task: Task, image: Image) -> str:
    return f"{_server(task, image)} for {task.intent.meta.domain}"


def _server(task: Task, image: Image) -> str:
    """The server that a check is asked from; an intent that waits has been found sound."""
    match task.check, task.intent:
        case _, ClusterRegistered() as intent:
            return f"new {intent.bootstrap_servers}"
        case _, AccessGranted() as intent:
            return image.access.requests[intent.request].cluster
        case _, (StatementAdded() | StatementUpdated()) as intent:
            return image.identity.domains[domain_of(intent.statement)].cluster
        case _, Configured():
            return "connect"
        case name, (ProductPublished() | ProductUpdated()) as intent if name == TOPIC_EXISTS:
            return image.identity.domains[domain_of(intent.product)].cluster
    return "registry"
