"""What a statement may read, and what it leads to: the way of data from topic to topic."""

from collections.abc import Iterable, Mapping

from projections.access import ENTITLED
from projections.connector_config import DEAD_LETTERS
from projections.image import Image
from projections.links import Desired
from projections.statements import Statement
from projections.steps import Place


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
    """Whether somebody removed the link under its grants: its readers have lost their rights."""
    found = image.links.get(link) if link is not None else None
    return found is not None and found.desired is Desired.REMOVED


def refused(image: Image, statement: Statement) -> list[str]:
    """Topics that a statement reads and may not, or may not any more."""
    return not_granted(
        image, statement.domain, statement.application, statement.cluster, statement.reads
    )


def way_back(image: Image, destination: Place, sources: Iterable[Place]) -> list[Place]:
    """How data of `destination` comes to one of `sources`; [] if it never does.

    Statements, sinks and granted accesses are looked at once, however long the way is.
    """
    wanted, next_of = set(sources), _ways(image)
    before: dict[Place, Place | None] = {destination: None}
    waiting = [destination]
    while waiting:
        here = waiting.pop()
        if here in wanted:
            return _way_to(here, before)
        # one way of several is told, the same wherever the log is judged again
        for there in sorted(next_of.get(here, ())):
            if there not in before:
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


def _ways(image: Image) -> Mapping[Place, list[Place]]:
    """Where data goes from each place, by statements, dead letters of sinks, and links."""
    found: dict[Place, list[Place]] = {}
    for statement in image.statements.values():
        if statement.stands:
            written = [(statement.cluster, topic) for topic in statement.writes]
            for read in statement.reads:
                found.setdefault((statement.cluster, read), []).extend(written)
    for connector in image.connectors.values():
        dead = connector.config.get(DEAD_LETTERS)
        if connector.stands and connector.is_sink and dead:
            for read in connector.reads:
                found.setdefault((connector.cluster, read), []).append((connector.cluster, dead))
    for link in image.access.standing:
        for access in image.access.of_link(link):
            if access.state in ENTITLED:
                product = image.catalog[access.product]
                source = product.cluster, product.topic
                found.setdefault(source, []).append((access.cluster, access.topic))
    return found
