"""What a statement may read, and what it leads to: the way of data from topic to topic."""

from collections.abc import Iterable, Mapping
from operator import is_not

from projections.access import ENTITLED
from projections.connectors.config import DEAD_LETTERS
from projections.image import Image
from projections.lineage.steps import Place
from projections.links import Desired
from projections.statements import Statement

Ways = Mapping[Place, list[tuple[Place, str]]]
"""Place -> where its data goes, with the sink whose dead letters these are, or empty."""


def not_granted(
    image: Image, domain: str, application: str | None, cluster: str, topics: Iterable[str]
) -> list[str]:
    """Those of the topics that are neither the domain's own nor granted to its application."""
    own = f"{domain}."
    return [
        topic
        for topic in topics
        if not topic.startswith(own) and not _is_granted(image, application, cluster, topic)
    ]


def _is_granted(image: Image, application: str | None, cluster: str, topic: str) -> bool:
    return application is not None and any(
        not _is_removed(image, access.link)
        for access in image.access.of_reader(application, cluster, topic)
    )


def _is_removed(image: Image, link: str | None) -> bool:
    """Whether somebody deleted the link under its grants: its readers have lost their rights."""
    found = image.links.get(link) if link is not None else None
    return found is not None and found.desired is Desired.DELETED


def refused(image: Image, statement: Statement) -> list[str]:
    """Topics that a statement reads and may not, or may not any more."""
    return not_granted(
        image, statement.domain, statement.application, statement.cluster, statement.reads
    )


def way_back(
    image: Image, destination: Place, sources: Iterable[Place], but: str | None = None
) -> list[Place]:
    """How data of `destination` comes to one of `sources`; [] if it never does.

    Statements, sinks and granted accesses are looked at once, however long the way is, and not
    again for another way in the same image.

    Args:
        image: where statements, sinks and accesses stand.
        destination: where the way begins.
        sources: where it ends.
        but: a sink whose dead letters are left out.
    """
    wanted, next_of = set(sources), _NEWEST.of(image)
    before: dict[Place, Place | None] = {destination: None}
    waiting = [destination]
    while waiting:
        here = waiting.pop()
        if here in wanted:
            return _way_to(here, before)
        # one way of several is told, the same wherever the log is judged again
        for there, sink in sorted(next_of.get(here, ())):
            if there not in before and sink != but:
                before[there] = here
                waiting.append(there)
    return []


def _way_to(place: Place, before: Mapping[Place, Place | None]) -> list[Place]:
    way = list[Place]()
    at: Place | None = place
    while at is not None:
        way.append(at)
        at = before[at]
    return way[::-1]


def _ways(image: Image) -> Ways:
    """Where data goes from each place, by statements, dead letters of sinks, and links."""
    found: dict[Place, list[tuple[Place, str]]] = {}
    for statement in image.statements.values():
        if statement.stands:
            written = [((statement.cluster, topic), "") for topic in statement.writes]
            for read in statement.reads:
                found.setdefault((statement.cluster, read), []).extend(written)
    for connector in image.connectors.values():
        dead = connector.config.get(DEAD_LETTERS)
        if connector.stands and connector.is_sink and dead:
            left = (connector.cluster, dead), connector.id
            for read in connector.reads:
                found.setdefault((connector.cluster, read), []).append(left)
    for link in image.access.standing:
        for access in image.access.of_link(link):
            if access.state in ENTITLED:
                product = image.catalog[access.product]
                source = product.cluster, product.topic
                found.setdefault(source, []).append(((access.cluster, access.topic), ""))
    return found


class _Newest:
    """The ways in the image that was asked for last: a judgement asks for more than one."""

    def __init__(self) -> None:
        self._known: tuple[tuple[object, ...], Ways] | None = None

    def of(self, image: Image) -> Ways:
        tables = image.statements, image.connectors, image.access, image.catalog
        known = self._known
        if known is None or any(map(is_not, known[0], tables)):
            known = self._known = tables, _ways(image)
        return known[1]


_NEWEST = _Newest()
