"""The checks keeper: looks at the world for intents that wait, and says what it found."""

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from mesh_events.errors import ConfigurationError, MeshError
from mesh_events.facts import CheckFailed, CheckPassed
from mesh_events.intents import (
    AccessGranted,
    ClusterRegistered,
    Intent,
    ProductPublished,
    domain_of,
)
from mesh_events.record import Entry
from mesh_events.references import resolve
from mesh_events.registry import Registry
from processors.clusters import ClusterAdmin, KafkaAdmin
from processors.keepers.keeper import Reign
from projections.catalog import SCHEMA_REGISTERED
from projections.decide import decide
from projections.image import Image
from projections.rules.access import TARGET_FREE
from projections.rules.catalog import TOPIC_EXISTS
from projections.rules.identity import CLUSTER_REACHABLE
from projections.verdict import Waiting

log = structlog.get_logger(__name__)
Clusters = Callable[[Image, str], ClusterAdmin]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of a check; a code means that it failed."""

    evidence: dict[str, str] = field(default_factory=dict)
    code: str = ""
    reason: str = ""


class ChecksKeeper:
    """Runs each missing check of each waiting intent; a server that is down is asked again."""

    name = "checks"

    def __init__(self, clusters: Clusters, registry: Registry) -> None:
        self._clusters, self._registry = clusters, registry

    def reconcile(self, image: Image, reign: Reign) -> None:
        """Look at the world once for every waiting intent."""
        for offset in sorted(image.intents.undecided):
            entry = image.intents.undecided[offset]
            # judged as of its arrival: a timeout is the governor's to declare
            verdict = decide(image, entry, entry.time)
            if isinstance(verdict, Waiting) and isinstance(entry.event, Intent):
                for check in verdict.checks:
                    self._run(check, image, entry, entry.event, reign)

    def _run(self, check: str, image: Image, entry: Entry, intent: Intent, reign: Reign) -> None:
        try:
            finding = self._look(check, image, intent)
        except MeshError as error:
            log.warning("check_not_possible", check=check, offset=entry.offset, error=str(error))
            return
        meta = reign.meta(
            intent.meta.id, f"check-{check}", entry.offset, correlation=intent.meta.correlation
        )
        common = {"meta": meta, "offset": entry.offset, "check": check}
        if finding.code:
            reign.report(
                CheckFailed(
                    **common, evidence=finding.evidence, code=finding.code, reason=finding.reason
                )
            )
        else:
            reign.report(CheckPassed(**common, evidence=finding.evidence))

    def _look(self, check: str, image: Image, intent: Intent) -> Finding:
        match check, intent:
            case (name, ClusterRegistered()) if name == CLUSTER_REACHABLE:
                return cluster_reachable(intent)
            case (name, ProductPublished()) if name == TOPIC_EXISTS:
                home = image.identity.domains[domain_of(intent.product)].cluster
                return topic_exists(intent.topic, self._clusters(image, home))
            case (name, ProductPublished()) if name == SCHEMA_REGISTERED:
                return schema_registered(intent.topic, self._registry)
            case (name, AccessGranted()) if name == TARGET_FREE:
                return self._target_free(image, intent)
        return Finding(code="unknown_check", reason=f"this mesh has no check {check}")

    def _target_free(self, image: Image, intent: AccessGranted) -> Finding:
        access = image.access.requests[intent.request]
        link = image.links.get(access.link or "")
        known = link.destination_topic_id if link is not None else None
        return target_free(access.topic, known, self._clusters(image, access.cluster))


def cluster_reachable(intent: ClusterRegistered) -> Finding:
    """The cluster answers, and lets the operator's principal in."""
    where = {"bootstrap_servers": intent.bootstrap_servers}
    try:
        password = resolve(intent.admin_password)
        admin = KafkaAdmin(intent.cluster, intent.bootstrap_servers, intent.admin_user, password)
        return Finding({**where, "brokers": str(admin.ping())})
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
        )
    return Finding({"subject": subject, "schema_id": str(found[0]), "version": str(found[1])})


def target_free(topic: str, known: str | None, admin: ClusterAdmin) -> Finding:
    """The copy's name is free in the consumer's cluster, or is the mesh's own copy already."""
    found = admin.topic(topic)
    where = {"cluster": admin.name, "topic": topic}
    if found is None:
        return Finding({**where, "found": "nothing"})
    if found.id == known:
        return Finding({**where, "found": "the link's own copy", "topic_id": found.id})
    return Finding(
        {**where, "topic_id": found.id},
        "target_taken",
        f"the topic {topic} exists on cluster {admin.name} and is not a copy made by the mesh: "
        "rename or delete it there, then grant again",
    )
