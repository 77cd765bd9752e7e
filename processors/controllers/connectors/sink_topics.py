"""Whether the topics of a sink are those that it has read: a new one begins at offset 0 again.

Rows that are found by their offsets would take the place of rows of earlier records, and positions
in the earlier topic would pass over records of the new one.
"""

from collections.abc import Callable, Mapping, Sequence

from mesh_events.errors import RefusedError
from processors.clusters.kafka import Topic
from projections.connectors.config import filled, is_by_record_key, replaces_rows
from projections.connectors.state import Connector, Connectors

TopicIds = Mapping[str, str]
"""Topic -> Kafka's id of it."""
RECREATED, MISSING = "source_recreated", "source_missing"
KEYS_MOVED, ADDED = "keys_moved", "partitions_added"
_SHOWN = 5


def group_of(connector: str) -> str:
    """The consumer group in which Kafka Connect reads for a sink."""
    return f"connect-{connector}"


def refusal(
    connector: Connector, connectors: Connectors, started: TopicIds, found: TopicIds
) -> RefusedError | None:
    """Why a sink may not read its topics as they are now; None if it may.

    Args:
        connector: the sink.
        connectors: all that the log has, also those that were deleted.
        started: the topics under which this process has started it, which the log may not have yet.
        found: the topics that there are.
    """
    known = {**connector.topic_ids, **started}
    gone = [topic for topic in connector.reads if topic in known and topic not in found]
    if gone:
        return RefusedError(
            MISSING,
            f"{_listed(gone)} on cluster {connector.cluster} does not exist any more: the "
            "connector goes on when it is copied or created again, or delete it",
        )
    if is_by_record_key(connector.config):
        return None
    anew = _rows_of_others(connector, connectors, started, found)
    return RefusedError(RECREATED, _reason(connector, anew)) if anew else None


def moved_keys(
    connector: Connector,
    versions: Callable[[str], Sequence[int]],
    found: Callable[[str], Topic | None],
) -> RefusedError | None:
    """Why the latest record of a key is not known in a topic of a sink; None if it is.

    The id of a key's schema is a part of the key's bytes, by which Kafka chooses the partition, and
    compacts: records of one row under two schemas have two keys.

    Args:
        connector: the sink.
        versions: subject -> the versions that it has.
        found: looks a topic up in the cluster.
    """
    if not replaces_rows(connector.config):
        return None
    for name in connector.reads:
        if len(versions(f"{name}-key")) < 2:
            continue
        topic = found(name)
        if topic is not None and topic.mixes_keys:
            return RefusedError(
                KEYS_MOVED,
                f"the keys of {name} on cluster {connector.cluster} have several schemas, whose "
                f"ids are a part of their bytes: {topic.mixes_keys}. Put the rows with "
                "the new key into a topic of their own (`sdm schema register --major`)",
            )
    return None


def parted_keys(
    connector: Connector, found: TopicIds, partitions: Mapping[str, int]
) -> RefusedError | None:
    """Why the latest record of a key is not known any more in a topic of a sink; None if it is.

    Args:
        connector: the sink.
        found: the topics that there are.
        partitions: topic -> how many it has.
    """
    for topic, known in connector.partitions.items():
        now = partitions.get(topic, known)
        if now > known and found.get(topic) == connector.topic_ids.get(topic):
            return RefusedError(
                ADDED,
                f"{topic} on cluster {connector.cluster} has {now} partitions, and had {known} "
                "when its records first became rows: those of one key may stand in two of them, "
                "and which is the latest is not known. Write the rows into a topic of their own; "
                "or, where each key stays in its partition, add the sink under another name",
            )
    return None


def has_other_positions(connector: Connector, started: TopicIds, found: TopicIds) -> bool:
    """Whether its positions are those of topics that were deleted and made again since."""
    known = {**connector.topic_ids, **started}
    return any(known.get(topic, now) != now for topic, now in found.items())


def read_anew(connector: Connector, found: TopicIds) -> str:
    """What is told of a sink, each of whose rows is a key's, before it goes on by itself."""
    known = connector.topic_ids
    anew = [topic for topic, now in found.items() if known.get(topic, now) != now]
    return (
        f"{_listed(anew)} on cluster {connector.cluster} was deleted and made again: it is read "
        "from its begin by itself; rows of keys that it has no more stay"
    )


def _rows_of_others(
    connector: Connector, connectors: Connectors, started: TopicIds, found: TopicIds
) -> list[str]:
    """Topics whose offsets stand for records of an earlier topic where its rows go."""
    places = connector.places

    def is_other(topic: str) -> bool:
        place, now = places[topic], found[topic]
        if topic in started:
            return started[topic] != now
        if place in connector.rows_of:
            return connector.rows_of[place] != now
        return any(one.rows_of.get(place, now) != now for one in connectors.values() if one.is_sink)

    return [topic for topic in connector.reads if topic in found and is_other(topic)]


def _reason(connector: Connector, topics: list[str]) -> str:
    what = (
        f"{_listed(topics)} on cluster {connector.cluster} was deleted and made again: its offsets "
        "begin anew, and its records would take the place of rows of earlier ones"
    )
    domain, _, name = connector.id.partition(".")
    if filled(connector.config):
        return (
            f"{what}. Name another table, which gets the topic from its begin: `sdm connect "
            f"connector update {name} --set 'collection.name.format=${{topic}}_2' -d {domain}`; "
            "the earlier rows stay where they are"
        )
    return f"{what}. Delete it, and add one under another name that writes into another place"


def _listed(topics: list[str]) -> str:
    more = f" and {len(topics) - _SHOWN} more" if len(topics) > _SHOWN else ""
    return ", ".join(topics[:_SHOWN]) + more
