"""The checks keeper: looks at the world for intents that wait, and says what it found."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

import structlog

from mesh_events.errors import ConfigurationError, MeshError, RefusedError
from mesh_events.facts import CheckFailed, CheckPassed
from mesh_events.intents import (
    AccessGranted,
    ClusterRegistered,
    Intent,
    ProductPublished,
    domain_of,
)
from mesh_events.kafka import Connection
from mesh_events.references import resolve
from mesh_events.registry import Registry
from mesh_events.statements import Begin, StatementAdded, StatementUpdated, Wording
from mesh_events.transport import Tls
from processors.clusters import ClusterAdmin, KafkaAdmin
from processors.keepers import fence
from processors.keepers.flow_ends import Logs
from processors.keepers.keeper import Reign, ReignOverError
from processors.keepers.lanes import Job, Lanes, OneByOne, for_a_while
from projections.catalog import SCHEMA_REGISTERED
from projections.decide import decide
from projections.image import Image
from projections.rules.access import TARGET_FREE
from projections.rules.catalog import TOPIC_EXISTS
from projections.rules.identity import CLUSTER_REACHABLE
from projections.rules.statements import DESTINATION_FREE
from projections.statements import DEAD_LETTERS, END_OF, STATEMENT_SOUND
from projections.verdict import Waiting
from spark_streams.sql.parse import parse
from spark_streams.sql.plan import planned, require_same

log = structlog.get_logger(__name__)
CERTAIN_S = 2.0
"""What a registry lacks must be lacking for so long: one that starts may answer before it has read
its own log to the end. Measured with Apicurio after a kill: for 0.05 to 0.3 s."""
CHECKED = (ClusterRegistered, ProductPublished, AccessGranted, StatementAdded, StatementUpdated)
"""Intents that may wait for the world; thousands of others may be undecided beside them."""
Clusters = Callable[[Image, str], ClusterAdmin]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of a check; a code means that it failed, once that was so for `certain_s`."""

    evidence: dict[str, str] = field(default_factory=dict)
    code: str = ""
    reason: str = ""
    certain_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Task:
    """One check to be made for the waiting intent at `offset`."""

    offset: int
    check: str
    intent: Intent


class ChecksKeeper:
    """Runs each missing check of each waiting intent; a server that is down is asked again.

    Each server is a lane of its own, and on it the domains take turns: neither a server that does
    not answer nor a domain that says very much holds up the others.
    """

    name = "checks"

    def __init__(
        self,
        clusters: Clusters,
        registry: Registry,
        lanes: Lanes | None = None,
        tls: Tls | None = None,
        logs: Logs | None = None,
    ) -> None:
        self._clusters, self._registry, self._lanes = clusters, registry, lanes or OneByOne()
        self._tls, self._logs = tls, logs
        # (offset, check) -> since when it fails, s of the monotonic clock
        self._failing: dict[tuple[int, str], float] = {}

    def reconcile(self, image: Image, reign: Reign) -> None:
        """Look at the world for waiting intents, some of each domain."""
        # a copy: lanes that are busy change it meanwhile
        for over in [one for one in list(self._failing) if one[0] not in image.intents.undecided]:
            self._failing.pop(over, None)
        lanes: dict[str, list[Task]] = {}
        for task in missing(image):
            lanes.setdefault(_server(task, image), []).append(task)

        def job(tasks: list[Task]) -> Job:
            return lambda: self._work(by_turns(tasks), image, reign)

        self._lanes.run({name: job(tasks) for name, tasks in lanes.items()}, image, reign)

    def _work(self, tasks: Iterable[Task], image: Image, reign: Reign) -> None:
        """Make checks for a while; what is left comes with the next, fresher image."""
        for task in for_a_while(tasks):
            self._run(task, image, reign)

    def _run(self, task: Task, image: Image, reign: Reign) -> None:
        intent = task.intent
        try:
            finding = self._look(task.check, image, intent)
        except ReignOverError:
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
        step = f"check-{task.check}"
        meta = reign.meta(intent.meta.id, step, task.offset, correlation=intent.meta.correlation)
        common = {"meta": meta, "offset": task.offset, "check": task.check}
        common["evidence"] = finding.evidence
        if finding.code:
            reign.report(CheckFailed(**common, code=finding.code, reason=finding.reason))
        else:
            reign.report(CheckPassed(**common))

    def _look(self, check: str, image: Image, intent: Intent) -> Finding:
        match check, intent:
            case (name, ClusterRegistered()) if name == CLUSTER_REACHABLE:
                return cluster_reachable(intent, self._tls)
            case (name, ProductPublished()) if name == TOPIC_EXISTS:
                home = image.identity.domains[domain_of(intent.product)].cluster
                return topic_exists(intent.topic, self._clusters(image, home))
            case (name, ProductPublished()) if name == SCHEMA_REGISTERED:
                return schema_registered(intent.topic, self._registry)
            case (name, AccessGranted()) if name == TARGET_FREE:
                return self._target_free(image, intent)
            case (name, Wording()) if name == STATEMENT_SOUND:
                return self._statement_sound(image, intent)
            case (name, StatementAdded()) if name == DESTINATION_FREE:
                home = image.identity.domains[domain_of(intent.statement)].cluster
                return destination_free(intent, self._clusters(image, home))
        return Finding(code="unknown_check", reason=f"this mesh has no check {check}")

    def _target_free(self, image: Image, intent: AccessGranted) -> Finding:
        access = image.access.requests[intent.request]
        link = image.links.get(access.link or "")
        known = link.destination_topic_id if link is not None else None
        admin = self._clusters(image, access.cluster)
        # an earlier grant's copy is being made: its mark is older than the topic
        made = link is not None and known is None and fence.marks(admin, access.topic, link.id).ours
        return target_free(access.topic, known, admin, being_made=made)

    def _statement_sound(self, image: Image, intent: Wording) -> Finding:
        """The text can be understood over the topics that it names; see `statement_sound`."""
        home = image.identity.domains[domain_of(intent.statement)].cluster
        known = image.statements.get(intent.statement)
        destination = intent.destination if isinstance(intent, StatementAdded) else ""
        if not destination and known is not None:
            destination = known.destination
        admin = self._clusters(image, home)
        found = statement_sound(intent, destination, admin, self._registry)
        if found.code or not isinstance(intent, StatementAdded) or self._logs is None:
            return found
        if intent.begin is not Begin.LATEST:
            return found
        partitions = range(int(found.evidence["partitions"]))
        bounds = self._logs.source(image, home).bounds(intent.stream, partitions)
        ends = {f"{END_OF}{partition}": str(end) for partition, (_, end) in bounds.items()}
        return Finding({**found.evidence, **ends})


def missing(image: Image) -> Iterator[Task]:
    """The checks that intents wait for, the oldest intent first."""
    for offset in sorted(image.intents.undecided):
        entry = image.intents.undecided[offset]
        if not isinstance(entry.event, CHECKED):
            continue
        # judged as of its arrival: a timeout is the governor's to declare
        verdict = decide(image, entry, entry.time)
        if isinstance(verdict, Waiting):
            for check in verdict.checks:
                yield Task(offset, check, entry.event)


def by_turns(tasks: Iterable[Task]) -> list[Task]:
    """Each domain's first task, then each one's second, and so on."""
    taken: dict[str, int] = {}
    numbered = []
    for task in tasks:
        domain = task.intent.meta.domain
        taken[domain] = taken.get(domain, 0) + 1
        numbered.append((taken[domain], task))
    return [task for _, task in sorted(numbered, key=itemgetter(0))]


def _server(task: Task, image: Image) -> str:
    """The server that a check is asked from; an intent that waits has been found sound."""
    match task.check, task.intent:
        case _, ClusterRegistered() as intent:
            return f"new {intent.bootstrap_servers}"
        case _, AccessGranted() as intent:
            return image.access.requests[intent.request].cluster
        case _, (StatementAdded() | StatementUpdated()) as intent:
            return image.identity.domains[domain_of(intent.statement)].cluster
        case name, ProductPublished() as intent if name == TOPIC_EXISTS:
            return image.identity.domains[domain_of(intent.product)].cluster
    return "registry"


def cluster_reachable(intent: ClusterRegistered, tls: Tls | None) -> Finding:
    """The cluster answers, and lets the operator's principal in."""
    where = {"bootstrap_servers": intent.bootstrap_servers}
    try:
        password = resolve(intent.admin_password)
        login = Connection(intent.bootstrap_servers, intent.admin_user, password, tls)
        return Finding({**where, "brokers": str(KafkaAdmin(intent.cluster, login).ping())})
    except ConfigurationError as error:
        return Finding(where, "cluster_login_failed", f"{error}; correct it and register again")


def topic_exists(topic: str, admin: ClusterAdmin) -> Finding:
    """The topic is there; the evidence tells its partitions and Kafka's id of it."""
    found = admin.topic(topic)
    where = {"cluster": admin.name, "topic": topic}
    if found is None:
        return Finding(
            where,
            "unknown_topic",
            f"there is no topic {topic} on cluster {admin.name}: create it, then publish again",
        )
    return Finding({**where, "topic_id": found.id, "partitions": str(found.partitions)})


def schema_registered(topic: str, registry: Registry) -> Finding:
    """The topic's values have a registered schema, `<topic>-value`."""
    subject = f"{topic}-value"
    found = registry.latest(subject)
    if found is None:
        return Finding(
            {"subject": subject},
            "no_schema",
            f"the registry has no subject {subject}: register the schema of the topic's values, "
            "then publish again",
            CERTAIN_S,
        )
    return Finding({"subject": subject, "schema_id": str(found[0]), "version": str(found[1])})


def target_free(
    topic: str, known: str | None, admin: ClusterAdmin, *, being_made: bool = False
) -> Finding:
    """The copy's name is free in the consumer's cluster, or is the mesh's own copy already."""
    found = admin.topic(topic)
    where = {"cluster": admin.name, "topic": topic}
    if found is None:
        return Finding({**where, "found": "nothing"})
    if being_made or found.id == known:
        return Finding({**where, "found": "the link's own copy", "topic_id": found.id})
    return Finding(
        {**where, "topic_id": found.id},
        "target_taken",
        f"the topic {topic} exists on cluster {admin.name} and is not a copy made by the mesh: "
        "rename or delete it there, then grant again",
    )


def statement_sound(
    intent: Wording, destination: str, admin: ClusterAdmin, registry: Registry
) -> Finding:
    """The topics are there, and the text can be understood over their schemas.

    The types of its columns are Spark's to judge, when it starts.
    """
    where = {"cluster": admin.name, "stream": intent.stream}
    topics = {name: admin.topic(name) for name in (intent.stream, *intent.tables)}
    for name, found in topics.items():
        if found is None:
            return Finding(
                where,
                "unknown_topic",
                f"there is no topic {name} on cluster {admin.name}: create it, then say it again",
            )
    stream = topics[intent.stream]
    assert stream is not None  # noqa: S101 - for the type checker; told above
    try:
        parsed = parse(intent.sql)
        require_same(parsed, intent.names, intent.stream, intent.tables, destination)
        plan = planned(parsed, intent.names, registry)
    except RefusedError as error:
        return Finding(where, error.code, str(error), CERTAIN_S if error.code == "no_schema" else 0)
    columns = ", ".join(one.name for one in plan.query.out)
    return Finding({**where, "partitions": str(stream.partitions), "columns": columns})


def destination_free(intent: StatementAdded, admin: ClusterAdmin) -> Finding:
    """What the statement is to fill is not there yet: it is never written over."""
    where = {"cluster": admin.name, "topic": intent.destination}
    for name in (intent.destination, intent.destination + DEAD_LETTERS):
        found = admin.topic(name)
        if found is not None:
            return Finding(
                {**where, "topic": name, "topic_id": found.id},
                "target_taken",
                f"the topic {name} exists on cluster {admin.name}: a statement fills topics of its "
                "own; name another destination, or delete it, then add the statement again",
            )
    return Finding({**where, "found": "nothing"})
