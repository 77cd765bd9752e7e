"""Topics against what the log says of them."""

from dataclasses import replace

from immutables import Map

from mesh_events.intents import LinkCreated
from processors.clusters.kafka import Topic
from processors.clusters.topic_drift import TopicDrift, TopicFinding, of_copy, of_product
from projections import links
from projections.links import Copy, Desired, Link
from tests.links.harness import _product, meta

PRODUCT = _product("east.users", "east", "east.users")
EVIDENCE = {"topic_id": "id-1", "partitions": "2"}
SOURCE = Topic("east.users", "id-1", 2, {"retention.ms": "1000", "cleanup.policy": "compact"})
COPY = Topic(
    "east.users",
    "id-2",
    2,
    {
        "cleanup.policy": "compact",
        "delete.retention.ms": "86400000",
        "max.message.bytes": "16781312",
        "retention.bytes": "-1",
        "retention.ms": "1000",
    },
)


def _link() -> Link:
    event = LinkCreated(meta=meta("create"), product="east.users", cluster="west")
    [(_, made)] = links.created(Map(), event, PRODUCT, 1, 1).items()
    return replace(made, copy=Copy.PRESENT, destination_topic_id="id-2")


LINK = _link()


def kinds(found: list[TopicFinding]) -> list[TopicDrift]:
    return [one.kind for one in found]


def test_topics_as_the_log_says_are_no_drift() -> None:
    assert not list(of_product(PRODUCT, SOURCE, EVIDENCE))
    assert not list(of_copy(LINK, SOURCE, COPY))


def test_a_product_whose_topic_is_gone_made_again_or_widened_is_found() -> None:
    assert kinds([*of_product(PRODUCT, None, EVIDENCE)]) == [TopicDrift.TOPIC_MISSING]
    again = replace(SOURCE, id="id-9")
    assert kinds([*of_product(PRODUCT, again, EVIDENCE)]) == [TopicDrift.TOPIC_RECREATED]
    wider = replace(SOURCE, partitions=3)
    assert kinds([*of_product(PRODUCT, wider, EVIDENCE)]) == [TopicDrift.PARTITIONS_CHANGED]


def test_a_publication_without_evidence_is_compared_with_nothing() -> None:
    assert not list(of_product(PRODUCT, SOURCE, {}))


def test_a_copy_that_is_gone_made_again_or_narrower_is_found() -> None:
    assert kinds([*of_copy(LINK, SOURCE, None)]) == [TopicDrift.COPY_MISSING]
    again = replace(COPY, id="id-9")
    assert kinds([*of_copy(LINK, SOURCE, again)]) == [TopicDrift.COPY_RECREATED]
    narrower = replace(COPY, partitions=1)
    assert kinds([*of_copy(LINK, SOURCE, narrower)]) == [TopicDrift.COPY_PARTITIONS]


def test_a_copy_with_other_settings_names_them() -> None:
    other = replace(COPY, config={**COPY.config, "retention.ms": "5"})
    [found] = of_copy(LINK, SOURCE, other)
    assert found.kind is TopicDrift.COPY_SETTINGS
    assert found.detail == "retention.ms is 5, made from the source it is 1000"


def test_a_copy_that_deletes_by_size_as_its_source_does_is_found() -> None:
    bounded = {"retention.bytes": "1000"}
    source = replace(SOURCE, config={**SOURCE.config, **bounded})
    [found] = of_copy(LINK, source, replace(COPY, config={**COPY.config, **bounded}))
    assert found.kind is TopicDrift.COPY_SETTINGS
    assert found.detail == "retention.bytes is 1000, made from the source it is -1"


def test_a_copy_at_its_clusters_defaults_is_drift_where_they_are_others() -> None:
    """Kafka tells of each topic what holds for it."""
    source = replace(SOURCE, config={})
    told = {"cleanup.policy": "delete", "retention.ms": "604800000"}
    copy = replace(COPY, config={**COPY.config, **told})
    assert not list(of_copy(LINK, source, copy))
    other = replace(copy, config={**copy.config, "retention.ms": "3600000"})
    [found] = of_copy(LINK, source, other)
    assert found.detail == "retention.ms is 3600000, made from the source it is 604800000"


def test_a_copy_that_must_not_be_there_is_not_missed() -> None:
    for gone in (replace(LINK, copy=Copy.PURGED), replace(LINK, copy=Copy.NONE)):
        assert not list(of_copy(gone, SOURCE, None))
    retained = replace(LINK, copy=Copy.RETAINED, desired=Desired.DELETED)
    assert not list(of_copy(retained, None, COPY))
