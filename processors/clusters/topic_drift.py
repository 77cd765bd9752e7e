"""How topics differ from what the log says of them: a product's topic, and a link's copy. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from processors.clusters.kafka import Topic
from processors.controllers.flows.copy_settings import copied_settings
from projections.catalog import Product
from projections.links import Copy, Desired, Link


class TopicDrift(StrEnum):
    """What is not as the log says; see docs/operating/drift.md."""

    TOPIC_MISSING = "TOPIC_MISSING"
    TOPIC_RECREATED = "TOPIC_RECREATED"
    PARTITIONS_CHANGED = "PARTITIONS_CHANGED"
    COPY_MISSING = "COPY_MISSING"
    COPY_RECREATED = "COPY_RECREATED"
    COPY_PARTITIONS = "COPY_PARTITIONS"
    COPY_SETTINGS = "COPY_SETTINGS"


@dataclass(frozen=True, slots=True)
class TopicFinding:
    """One difference of a topic; `subject` is a product or a link."""

    kind: TopicDrift
    cluster: str
    subject: str
    topic: str
    detail: str


def of_product(
    product: Product, now: Topic | None, evidence: Mapping[str, str]
) -> Iterator[TopicFinding]:
    """What differs of a product's topic.

    Args:
        product: as the catalog has it.
        now: the topic on the product's cluster.
        evidence: what the check `topic_exists` found at publication: `topic_id`, `partitions`.
    """

    def found(kind: TopicDrift, detail: str) -> TopicFinding:
        return TopicFinding(kind, product.cluster, product.id, product.topic, detail)

    if now is None:
        yield found(TopicDrift.TOPIC_MISSING, "the topic does not exist")
        return
    then, partitions = evidence.get("topic_id"), evidence.get("partitions")
    if then not in (None, now.id):
        yield found(TopicDrift.TOPIC_RECREATED, f"published with id {then}, now it is {now.id}")
    if partitions not in (None, str(now.partitions)):
        yield found(
            TopicDrift.PARTITIONS_CHANGED,
            f"published with {partitions} partitions, now it has {now.partitions}",
        )


def of_copy(link: Link, source: Topic | None, copy: Topic | None) -> Iterator[TopicFinding]:
    """What differs of a link's copy.

    Args:
        link: as the log has it.
        source: the topic that is copied, None if there is none.
        copy: the topic under the copy's name, None if there is none.
    """

    def found(kind: TopicDrift, detail: str) -> TopicFinding:
        return TopicFinding(kind, link.cluster, link.id, link.topic, detail)

    if link.copy not in (Copy.PRESENT, Copy.RETAINED):
        return
    if copy is None:
        yield found(TopicDrift.COPY_MISSING, "the copy does not exist")
        return
    if link.destination_topic_id not in (None, copy.id):
        made = link.destination_topic_id
        yield found(TopicDrift.COPY_RECREATED, f"made with id {made}, now it is {copy.id}")
    if source is None or link.desired is Desired.DELETED:
        return
    if source.partitions != copy.partitions:
        detail = f"the source has {source.partitions} partitions, the copy {copy.partitions}"
        yield found(TopicDrift.COPY_PARTITIONS, detail)
    wanted = copied_settings(source.config)
    differing = [
        f"{name} is {copy.config.get(name, 'the default')}, made from the source it is {value}"
        for name, value in sorted(wanted.items())
        if copy.config.get(name) != value
    ]
    if differing:
        yield found(TopicDrift.COPY_SETTINGS, "; ".join(differing))
