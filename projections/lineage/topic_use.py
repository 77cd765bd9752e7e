"""Which connectors and statements fill a topic, so that no two fill the same one.

The index is kept as the log is folded, as that of the databases' tables: a record costs the topics
of what it changes, and a rule those that it judges.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from immutables import Map

from mesh_events.rows import ConnectorRow, StatementRow
from projections.table import Table, with_entry

if TYPE_CHECKING:
    from projections.image import Image

Place = tuple[str, str]
"""(cluster, topic with _ for each .): Kafka takes the two for the same."""
Fillers = Map[str, int]
"""What fills a topic: `connector NAME` or `statement NAME` -> 1."""
TopicUse = Table[Place, Fillers]
EMPTY: TopicUse = Map()


class Filler(Protocol):
    """A connector or a statement."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def cluster(self) -> str:
        """Where its topics are."""

    @property
    def writes(self) -> tuple[str, ...]:
        """The topics that it fills."""

    @property
    def is_over(self) -> bool:
        """Whether it is gone."""


def place(cluster: str, topic: str) -> Place:
    """Where a topic stands in the index."""
    return cluster, topic.replace(".", "_")


def fillers(
    known: TopicUse, cluster: str, topics: Iterable[str], but: tuple[str, str]
) -> dict[str, list[str]]:
    """Topics that are filled already -> the names of what fills each, in order.

    Args:
        known: the index.
        cluster: where the topics are.
        topics: those that are to be filled.
        but: (kind, name) of what is to fill them, which may have them already.
    """
    found = {}
    for topic in topics:
        others = set(known.get(place(cluster, topic), Map())) - {" ".join(but)}
        if others:
            found[topic] = sorted(one.partition(" ")[2] for one in others)
    return found


def with_topic_use(before: "Image", after: "Image") -> "Image":
    """The image after a record, with the topics of what the record has changed."""
    known = after.topic_use
    for topic, name in after.touched:
        if topic in _KINDS:
            kind, table = _KINDS[topic]
            known = _moved(known, f"{kind} {name}", table(before).get(name), table(after).get(name))
    return after if known is after.topic_use else after._replace(topic_use=known)


def _moved(known: TopicUse, name: str, old: Filler | None, new: Filler | None) -> TopicUse:
    if old is new:
        return known
    was, now = _fills(old), _fills(new)
    for keys, number in ((was - now, None), (now - was, 1)):
        for key in keys:
            known = with_entry(known, key, name, number)
    return known


def _fills(one: Filler | None) -> set[Place]:
    """Places of the topics that something fills; none where it is gone."""
    if one is None or one.is_over:
        return set()
    return {place(one.cluster, topic) for topic in one.writes}


_KINDS: Mapping[str, tuple[str, Callable[["Image"], Mapping[str, Filler]]]] = {
    ConnectorRow.topic: ("connector", attrgetter("connectors")),
    StatementRow.topic: ("statement", attrgetter("statements")),
}
"""Topic of the rows -> what they are of, and where the image has it."""
