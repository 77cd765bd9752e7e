"""The products on offer."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from immutables import Map

from mesh_events.facts import Check
from mesh_events.intents import ProductPublished, ProductUpdated, Quality, domain_of
from projections.table import Table

SCHEMA_REGISTERED = "schema_registered"
"""The check whose evidence tells the product's schema."""
_LONGEST_SCHEMA_ID = 10  # digits of a 32-bit number


@dataclass(frozen=True, slots=True)
class Product:
    """A published product; times in ms of the log, `changed` is the offset that last changed it."""

    id: str
    cluster: str
    topic: str
    description: str
    owner: str
    quality: Quality
    sla: int
    tags: tuple[str, ...]
    version: str
    schema_subject: str
    schema_id: int
    generation: int
    published_at: int
    updated_at: int
    changed: int

    @property
    def domain(self) -> str:
        """The owning domain."""
        return domain_of(self.id)


Catalog = Table[str, Product]
"""Product id -> product."""
EMPTY: Catalog = Map()


def published(
    catalog: Catalog,
    event: ProductPublished,
    cluster: str,
    checks: Mapping[str, Check],
    generation: int,
    time: int,
) -> Catalog:
    """A product is on offer; its schema is what the check found."""
    found = checks[SCHEMA_REGISTERED].evidence if SCHEMA_REGISTERED in checks else {}
    product = Product(
        id=event.product,
        cluster=cluster,
        topic=event.topic,
        description=event.description,
        owner=event.owner,
        quality=event.quality,
        sla=event.sla,
        tags=tuple(event.tags),
        version=event.version,
        schema_subject=found.get("subject", ""),
        schema_id=_schema_id(found.get("schema_id", "")),
        generation=generation,
        published_at=time,
        updated_at=time,
        changed=generation,
    )
    return catalog.set(event.product, product)


def updated(
    catalog: Catalog,
    event: ProductUpdated,
    checks: Mapping[str, Check],
    generation: int,
    time: int,
) -> Catalog:
    """The owner changed what the catalog says; null fields stay as they were.

    The schema changes where the topic was replaced, to what the check found.
    """
    given: dict[str, Any] = {
        name: value
        for name in ("description", "owner", "quality", "sla", "version")
        if (value := getattr(event, name)) is not None
    }
    if event.tags is not None:
        given["tags"] = tuple(event.tags)
    if event.topic_replaced and SCHEMA_REGISTERED in checks:
        found = checks[SCHEMA_REGISTERED].evidence
        given["schema_subject"] = found.get("subject", "")
        given["schema_id"] = _schema_id(found.get("schema_id", ""))
    product = replace(
        catalog[event.product], generation=generation, updated_at=time, changed=generation, **given
    )
    return catalog.set(event.product, product)


def _schema_id(evidence: str) -> int:
    """The registry's id, 0 if the evidence tells none: a fact must never stop the fold."""
    plain = evidence.isascii() and evidence.isdecimal() and len(evidence) <= _LONGEST_SCHEMA_ID
    return int(evidence) if plain else 0
