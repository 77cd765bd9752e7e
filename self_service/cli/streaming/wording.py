"""From what a person writes to what an intent says: which topics a statement's names mean. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesh_events.intents import domain_of
from projections.access import ENTITLED
from projections.image import Image
from projections.lineage.sources import not_granted
from self_service.cli.framework.exits import UsageError
from spark_streams.sql.text.parse import Statement, parse


@dataclass(frozen=True, slots=True)
class Worded:
    """A statement in the words of an intent; `names` holds what is called otherwise in the text."""

    parsed: Statement
    stream: str
    tables: list[str]
    names: dict[str, str]
    destination: str | None
    application: str | None
    products: Mapping[str, str] = field(default_factory=dict)
    """Topic -> product, for sources that are products."""

    def fields(self) -> dict[str, Any]:
        """What an intent says of the text and its topics."""
        return {
            "sql": self.parsed.text,
            "stream": self.stream,
            "tables": self.tables,
            "names": self.names,
            "application": self.application,
        }


def worded(
    image: Image,
    domain: str,
    sql: str,
    sources: Mapping[str, str],
    destination: str | None,
    application: str | None,
) -> Worded:
    """Find out what is meant.

    Args:
        image: the mesh's state.
        domain: whose statement it is.
        sql: the text.
        sources: name in the text -> topic or product, where somebody says so.
        destination: topic to be filled, None: as the text says.
        application: whose grants count, None: the one that has them.

    Raises:
        SqlError: the text cannot be read.
        UsageError: a name or an option means nothing, or too much.
    """
    parsed = parse(sql)
    named = {one.name for one in parsed.sources}
    if unknown := sorted(sources.keys() - named):
        raise UsageError(
            f"the text has no source called {', '.join(unknown)}: it reads "
            f"{', '.join(sorted(named))}"
        )
    topics = {name: topic_of(image, domain, sources.get(name, name)) for name in sorted(named)}
    stream = topics[parsed.stream.name]
    tables = list(dict.fromkeys(topics[one.source.name] for one in parsed.joined))
    names = {name: topic for name, topic in topics.items() if name != topic}
    filled = None
    if parsed.destination is not None:
        filled = own_topic(image, domain, destination or parsed.destination.name)
        if filled != parsed.destination.name:
            names[parsed.destination.name] = filled
    elif destination is not None:
        filled = own_topic(image, domain, destination)
    application = application or reading_application(image, domain, [stream, *tables])
    products = {
        one.topic: one.id for one in image.catalog.values() if one.topic in (stream, *tables)
    }
    return Worded(parsed, stream, tables, names, filled, application, products)


def topic_of(image: Image, domain: str, name: str) -> str:
    """The topic that a name means: a product's, else the domain's own of that name, else itself."""
    product = image.catalog.get(name) or image.catalog.get(f"{domain}.{name}")
    if product is not None:
        return product.topic
    return name if "." in name else f"{domain}.{name}"


def own_topic(image: Image, domain: str, name: str) -> str:
    """The topic of the domain that a destination means."""
    product = image.catalog.get(name)
    if product is not None and product.domain == domain:
        return product.topic
    return name if "." in name else f"{domain}.{name}"


def reading_application(image: Image, domain: str, topics: Sequence[str]) -> str | None:
    """The one application of the domain that may read all of them; None where none is needed."""
    home = image.identity.domains[domain].cluster
    if not not_granted(image, domain, None, home, topics):
        return None
    reading = {
        one.application
        for one in image.access.requests.values()
        if one.state in ENTITLED and domain_of(one.application) == domain
    }
    able = [one for one in sorted(reading) if not not_granted(image, domain, one, home, topics)]
    if len(able) > 1:
        raise UsageError(f"{', '.join(able)} may read this: choose one with --application")
    # the governor's refusal names what is missing
    return able[0] if able else None
