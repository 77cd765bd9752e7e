"""Who has to be told when a topic is replaced: who reads it, and what fills it. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any

from mesh_events.intents import domain_of
from projections.access import ENTITLED
from projections.connectors.state import Connector
from projections.image import Image
from projections.links import Desired
from projections.statements import Statement


def readers(image: Image, topic: str) -> Iterator[dict[str, Any]]:
    """Who reads a topic or a copy of it: applications, statements, links and connectors."""
    products = {one.id for one in image.catalog.values() if one.topic == topic}
    for access in image.access.requests.values():
        if access.product in products and access.state in ENTITLED:
            yield _reader("application", access.application, access.consumer, access.cluster)
    for statement in image.statements.values():
        if statement.stands and topic in statement.reads:
            yield _reader("statement", statement.id, statement.domain, statement.cluster)
    for link in image.links.values():
        if link.product in products and link.desired is not Desired.DELETED:
            yield _reader("link", link.id, domain_of(link.product), link.cluster)
    for connector in image.connectors.values():
        if connector.stands and topic in connector.reads:
            yield _reader("connector", connector.id, connector.domain, connector.cluster)


def filled_by(image: Image, topic: str) -> list[str]:
    """Statements and connectors that write a topic: they go on with the old one."""
    return sorted(one.id for one in _fillers(image, topic))


def statement_into(image: Image, topic: str) -> str | None:
    """The statement that fills a topic, as its result or with its dead letters."""
    return next((one.id for one in _fillers(image, topic) if isinstance(one, Statement)), None)


def connector_into(image: Image, topic: str) -> str | None:
    """The connector that fills a topic."""
    return next((one.id for one in _fillers(image, topic) if isinstance(one, Connector)), None)


def users(image: Image, topic: str) -> list[str]:
    """What stands and reads or fills a topic, each with its kind."""
    reading = [f"{one['kind']} {one['name']}" for one in readers(image, topic)]
    filling = [f"{type(one).__name__.lower()} {one.id}" for one in _fillers(image, topic)]
    return list(dict.fromkeys([*reading, *filling]))


def left_dry(image: Image, topics: Iterable[str]) -> Iterator[str]:
    """A sentence for each topic that somebody reads, and that nothing fills from now on."""
    for topic in topics:
        names = dict.fromkeys(one["name"] for one in readers(image, topic))
        if names:
            yield f"{topic} receives no more records; it is read by {', '.join(names)}"


def _fillers(image: Image, topic: str) -> Iterator[Statement | Connector]:
    """The statements, then the connectors, that stand and write a topic."""
    for one in (*image.statements.values(), *image.connectors.values()):
        if one.stands and topic in one.writes:
            yield one


def _reader(kind: str, name: str, domain: str, cluster: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "domain": domain, "cluster": cluster}
