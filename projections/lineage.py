"""Where data comes from and where it goes, read off the image.

By topics, links, statements, connectors and readers. Pure, and so it can be asked of any moment.
A table of a database is a place as well: (OpenLineage's namespace, name).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from projections import connector_config
from projections.access import ENTITLED
from projections.connectors import Connector
from projections.image import Image
from projections.links import Copy, Link
from projections.sources import Place
from projections.statements import Statement

OUTSIDE = "outside"
"""Where a sink writes of which no more is known."""


@dataclass(frozen=True, slots=True)
class Step:
    """A job that reads some topics or tables and fills one.

    kind: `link`, `statement` or `connector`; state: as the log has it.
    reads: of a statement the stream first, then the tables; none if unknown.
    """

    kind: str
    name: str
    state: str
    reads: tuple[Place, ...]
    fills: Place


@dataclass(frozen=True, slots=True)
class Branch:
    """A topic with what lies behind it in one direction.

    again: it stands elsewhere in the same tree already, with all that is behind it.
    """

    place: Place
    steps: tuple[tuple[Step, tuple["Branch", ...]], ...] = ()
    again: bool = False


def steps(image: Image) -> list[Step]:
    """Every job that fills a topic or table, or has filled a topic that is still there."""
    links = (_of_link(one) for _, one in sorted(image.links.items()) if one.copy is not Copy.PURGED)
    statements = (_of_statement(one) for _, one in sorted(image.statements.items()) if one.stands)
    connectors = (
        step
        for _, one in sorted(image.connectors.items())
        if one.stands
        for step in _of_connector(one)
    )
    return [*links, *statements, *connectors]


def is_outside(place: Place) -> bool:
    """Whether it is no topic: a table, or what a connector does not tell more of."""
    return "://" in place[0] or place[0] == OUTSIDE


def upstream(image: Image, place: Place) -> Branch:
    """What the topic is made of."""
    known = steps(image)
    return _tree(
        place, lambda here: [(one, one.reads) for one in known if one.fills == here], set()
    )


def downstream(image: Image, place: Place) -> Branch:
    """What is made of the topic."""
    known = steps(image)
    return _tree(
        place, lambda here: [(one, (one.fills,)) for one in known if here in one.reads], set()
    )


def walk(branch: Branch) -> Iterator[Branch]:
    """Every topic of a tree, the root first."""
    yield branch
    for _, behind in branch.steps:
        for one in behind:
            yield from walk(one)


def product_of(image: Image, place: Place) -> str | None:
    """The product that a topic holds, also as a copy."""
    for product in image.catalog.values():
        if (product.cluster, product.topic) == place:
            return product.id
    for link in image.links.values():
        if (link.cluster, link.topic) == place and link.copy is not Copy.PURGED:
            return link.product
    return None


def readers(image: Image, place: Place) -> list[str]:
    """Applications that may read the topic by a grant."""
    found = {
        access.application
        for access in image.access.requests.values()
        if access.state in ENTITLED and (access.cluster, access.topic) == place
    }
    return sorted(found)


def _tree(
    place: Place,
    behind: Callable[[Place], list[tuple[Step, tuple[Place, ...]]]],
    seen: set[Place],
) -> Branch:
    if place in seen:
        return Branch(place, again=bool(behind(place)))
    seen.add(place)
    found = [
        (step, tuple(_tree(one, behind, seen) for one in _once(places)))
        for step, places in behind(place)
    ]
    return Branch(place, tuple(found))


def _once(places: Iterable[Place]) -> Iterable[Place]:
    return dict.fromkeys(places)


def _of_link(link: Link) -> Step:
    source, copy = (link.source_cluster, link.source_topic), (link.cluster, link.topic)
    return Step("link", link.id, link.state, (source,), copy)


def _of_statement(one: Statement) -> Step:
    reads = tuple((one.cluster, topic) for topic in one.reads)
    return Step("statement", one.id, one.state, reads, (one.cluster, one.destination))


def _of_connector(one: Connector) -> Iterator[Step]:
    """A step for each topic that it reads or fills."""
    if one.is_sink:
        tables = {found.topic: found for found in connector_config.filled(one.config)}
        for topic in one.reads:
            table = tables.get(topic)
            target = (table.namespace, table.name) if table else (OUTSIDE, one.id)
            yield Step("connector", one.id, one.state, ((one.cluster, topic),), target)
        return
    captured = {found.topic: found for found in connector_config.captured(one.config)}
    for topic in one.writes:
        found = captured.get(topic)
        reads = ((found.namespace, found.name),) if found else ()
        yield Step("connector", one.id, one.state, reads, (one.cluster, topic))
