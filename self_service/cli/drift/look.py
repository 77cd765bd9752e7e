"""The looks of `sdm drift`: clusters as they are now, compared with the image."""

from collections.abc import Iterator, Mapping
from typing import Any

from mesh_events.facts import DriftKind
from processors import bootstrap
from processors.acls.command import removal
from processors.clusters import drift, topic_drift
from processors.clusters.drift import Finding
from processors.clusters.kafka import ClusterAdmin, Topic
from processors.clusters.topic_drift import TopicDrift, TopicFinding
from processors.controllers.rights.wishes import desired
from projections.drift import left_at
from projections.image import Image
from projections.links import State
from self_service.cli.drift.log import DriftLog
from self_service.cli.framework.times import stamp

_REPAIRED = {
    DriftKind.RIGHT_MISSING: "restored within seconds",
    DriftKind.RIGHT_RETURNED: "removed within seconds",
    DriftKind.UNGRANTED_RIGHT: "removed within seconds, unless it reaches further than the mesh",
}
_STRANGE = "not repaired: the ACL is foreign to the mesh; its creator must remove it"
_WIDE = "not repaired: the ACL reaches further than the mesh; its creator must remove it"
_ONLY_TOLD = "not repaired: the worker only reports (SDM_DRIFT=report)"
_REPLACED = (
    "its links fail: delete and create them again; to offer the topic as it is, the product's "
    "owner runs `sdm product update {subject} --topic-replaced`"
)
_TOPICS = {
    TopicDrift.TOPIC_MISSING: "its readers fail until the owner recreates it",
    TopicDrift.TOPIC_RECREATED: _REPLACED,
    TopicDrift.PARTITIONS_CHANGED: (
        "links continue with more partitions and fail with fewer; once the topic is as intended, "
        "the product's owner runs `sdm product update {subject} --topic-replaced`"
    ),
    TopicDrift.COPY_MISSING: "the link fails: delete it and create it again",
    TopicDrift.COPY_RECREATED: "the link fails: delete that topic, delete the link, create it",
    TopicDrift.COPY_PARTITIONS: "the link fails: delete it and create it again",
    TopicDrift.COPY_SETTINGS: "not repaired: set it as the link would, or create the link again",
}


def rights(image: Image, cluster: str, admin: ClusterAdmin) -> list[dict[str, Any]]:
    """The findings about rights on one cluster, as lists show them."""
    wishes = [wish for wish in desired(image) if wish.cluster == cluster]
    seen = drift.scene(image, cluster, wishes, bootstrap.rights())
    acls = admin.acls()
    found = [*drift.of_wishes(wishes, acls), *drift.unexpected(seen, image, acls)]
    return [_right(one, image) for one in found]


def topics(said: DriftLog, admins: Mapping[str, ClusterAdmin]) -> Iterator[dict[str, Any]]:
    """The findings about products' topics and links' copies, as lists show them."""
    image = said.image
    known: dict[tuple[str, str], Topic | None] = {}

    def topic(cluster: str, name: str) -> Topic | None:
        if (cluster, name) not in known:
            known[cluster, name] = admins[cluster].topic(name)
        return known[cluster, name]

    for _, product in sorted(image.catalog.items()):
        evidence = said.evidence.get(product.id, {})
        now = topic(product.cluster, product.topic)
        for one in topic_drift.of_product(product, now, evidence):
            yield _topic(one, image)
    for _, link in sorted(image.links.items()):
        source = topic(link.source_cluster, link.source_topic)
        for one in topic_drift.of_copy(link, source, topic(link.cluster, link.topic)):
            yield _topic(one, image)


def _right(finding: Finding, image: Image) -> dict[str, Any]:
    left = left_at(image.drifts, (finding.cluster, finding.subject, finding.kind))
    return {
        "cluster": finding.cluster,
        "kind": finding.kind,
        "subject": finding.subject,
        "principal": finding.principal,
        "topics": list(finding.topics),
        "told_since": stamp(left.since_time) if left else None,
        "told_at_offset": left.since if left else None,
        "next": _next(finding, told=left is not None),
        "bindings": finding.bindings,
        "removal": list(_removal(finding)),
    }


def _removal(finding: Finding) -> Iterator[str]:
    """The commands that delete what is there and should not be."""
    if finding.kind is DriftKind.RIGHT_MISSING:
        return
    for acl in sorted(finding.acls):
        if (options := removal(acl)) is not None:
            yield f"sdm kafka acls --cluster {finding.cluster} -- {options}"


def _next(finding: Finding, *, told: bool) -> str:
    if finding.kind not in _REPAIRED:
        return _STRANGE
    if finding.kind is DriftKind.UNGRANTED_RIGHT and not finding.repairable:
        return _WIDE
    # what is left although it can be repaired is left by the worker's policy
    return _ONLY_TOLD if told else _REPAIRED[finding.kind]


def _topic(finding: TopicFinding, image: Image) -> dict[str, Any]:
    link = image.links.get(finding.subject)
    failed = link is not None and link.state is State.FAILED
    missing = (finding.cluster, f"product/{finding.subject}", DriftKind.TOPIC_MISSING)
    left = left_at(image.drifts, missing)
    is_told = left is not None and finding.kind is TopicDrift.TOPIC_MISSING
    since = (left.since_time, left.since) if left is not None and is_told else None
    if link is not None and failed:
        since = link.changed_at, link.changed
    return {
        "cluster": finding.cluster,
        "kind": finding.kind,
        "subject": finding.subject,
        "principal": None,
        "topics": [finding.topic],
        "told_since": stamp(since[0]) if since else None,
        "told_at_offset": since[1] if since else None,
        "failure_code": link.failure_code if link else None,
        "next": f"{finding.detail}: {_TOPICS[finding.kind].format(subject=finding.subject)}",
        "bindings": [],
        "removal": [],
    }
