"""What a statement may read, and what it leads to: the way of data from topic to topic."""

from collections.abc import Iterable, Iterator

from projections.access import ENTITLED
from projections.image import Image
from projections.links import Desired
from projections.statements import Statement
from projections.steps import Place


def not_granted(
    image: Image, domain: str, application: str | None, cluster: str, topics: Iterable[str]
) -> list[str]:
    """Those of the topics that are neither the domain's own nor granted to its application."""
    own = f"{domain}."
    foreign = [topic for topic in topics if not topic.startswith(own)]
    if not foreign:
        return []
    granted = {
        access.topic
        for access in image.access.requests.values()
        if access.application == application
        and access.cluster == cluster
        and access.state in ENTITLED
        and not _is_removed(image, access.link)
    }
    return [topic for topic in foreign if topic not in granted]


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
    """How data of `destination` comes to one of `sources`; [] if it never does."""
    wanted = set(sources)
    ways: dict[Place, list[Place]] = {destination: [destination]}
    waiting = [destination]
    while waiting:
        here = waiting.pop()
        if here in wanted:
            return ways[here]
        for there in _next(image, here):
            if there not in ways:
                ways[there] = [*ways[here], there]
                waiting.append(there)
    return []


def _next(image: Image, place: Place) -> Iterator[Place]:
    for statement in image.statements.values():
        if statement.stands and statement.cluster == place[0] and place[1] in statement.reads:
            for topic in statement.writes:
                yield statement.cluster, topic
    for access in image.access.requests.values():
        if access.state in ENTITLED and access.link is not None:
            product = image.catalog[access.product]
            if (product.cluster, product.topic) == place:
                yield access.cluster, access.topic
