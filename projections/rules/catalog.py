"""Rules for publishing and updating products."""

import re

from mesh_events.intents import ProductPublished, ProductUpdated, Quality, domain_of
from projections.catalog import SCHEMA_REGISTERED
from projections.deciding.verdict import Accepted, DecisionContext, Verdict, require
from projections.quotas.kinds import Kind
from projections.rules import names
from projections.rules.quotas import require_room
from projections.rules.registry import judge

TOPIC_EXISTS = "topic_exists"
_VERSION = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}")
_TAG = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,62}")


@judge.register
def _(intent: ProductPublished, context: DecisionContext) -> Verdict:
    names.dotted(intent.product, "a product")
    _own(context, intent.product)
    names.topic(intent.topic, domain_of(intent.product))
    names.text(intent.description, "the description")
    names.text(intent.owner, "the owner")
    _quality(intent.quality)
    _sla(intent.sla)
    _tags(intent.tags)
    _version(intent.version)
    require(
        intent.acknowledged,
        "not_acknowledged",
        "a published product is a promise to its consumers: acknowledge it to publish",
    )
    require(
        intent.product not in context.image.catalog,
        "product_exists",
        f"the product {intent.product} is published already: update it instead",
    )
    other = context.image.carried.get(intent.topic)
    require(
        other is None,
        "topic_taken",
        f"the topic {intent.topic} carries the product {other}: publish another one, since rights "
        "and copies go by topic",
    )
    require_room(context, Kind.PRODUCTS, domain_of(intent.product))
    return context.after(TOPIC_EXISTS, SCHEMA_REGISTERED)


@judge.register
def _(intent: ProductUpdated, context: DecisionContext) -> Verdict:
    names.dotted(intent.product, "a product")
    _own(context, intent.product)
    require(
        intent.product in context.image.catalog,
        "unknown_product",
        f"there is no product {intent.product}: search the catalog, or publish it",
    )
    if intent.description is not None:
        names.text(intent.description, "the description")
    if intent.owner is not None:
        names.text(intent.owner, "the owner")
    if intent.quality is not None:
        _quality(intent.quality)
    if intent.sla is not None:
        _sla(intent.sla)
    if intent.tags is not None:
        _tags(intent.tags)
    if intent.version is not None:
        _version(intent.version)
    # as at a publication: from here on the topic is compared with what the checks find
    return context.after(TOPIC_EXISTS, SCHEMA_REGISTERED) if intent.topic_replaced else Accepted()


def _own(context: DecisionContext, product: str) -> None:
    owner = domain_of(product)
    require(
        context.domain == owner,
        "not_your_domain",
        f"{context.domain} may not speak for {owner}: only {owner} can publish or change {product}",
    )
    require(
        owner in context.image.identity.domains,
        "unknown_domain",
        f"there is no domain {owner}: list them, or register it first",
    )


def _quality(quality: Quality) -> None:
    require(
        quality is not Quality.UNKNOWN,
        "invalid_quality",
        "quality must be RAW, STANDARD or ENRICHED",
    )


def _sla(sla: int) -> None:
    require(1 <= sla <= 3, "invalid_sla", f"{sla} is no service tier: use 1 (best), 2 or 3")


def _tags(tags: list[str]) -> None:
    require(len(tags) <= 50, "invalid_tags", f"{len(tags)} tags are too many: use at most 50")
    for tag in tags:
        require(
            _TAG.fullmatch(tag),
            "invalid_tags",
            f"{tag!r} cannot be a tag: use a-z, 0-9, '_', '.', ':' and '-', at most 63",
        )


def _version(version: str) -> None:
    require(
        _VERSION.fullmatch(version),
        "invalid_version",
        f"{version[:40]!r} is not a version: use three numbers, such as 1.0.0",
    )
