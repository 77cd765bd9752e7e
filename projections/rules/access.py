"""Rules for requests and grants: the owner decides, nobody decides on their own request."""

from mesh_events.intents import (
    AccessDenied,
    AccessGranted,
    AccessRequested,
    AccessRevoked,
    OnRevoke,
    domain_of,
)
from projections.access import ENTITLED, Access, State
from projections.deciding.verdict import Accepted, DecisionContext, Verdict, require
from projections.identity import Role
from projections.image import reading_place
from projections.lineage.sources import way_back
from projections.quotas.kinds import Kind
from projections.rules import names
from projections.rules.links import require_known, require_link_room
from projections.rules.quotas import require_room
from projections.rules.registry import judge

TARGET_FREE = "target_free"


@judge.register
def _(intent: AccessRequested, context: DecisionContext) -> Verdict:
    consumer = domain_of(intent.application)
    require(
        context.domain == consumer,
        "not_your_domain",
        f"{context.domain} may not ask for {intent.application}: only {consumer} can",
    )
    names.text(intent.reason, "the reason")
    require(
        intent.application in context.image.identity.applications,
        "unknown_application",
        f"there is no application {intent.application}: list them, or register it first",
    )
    product = context.image.catalog.get(intent.product)
    require(
        product is not None,
        "unknown_product",
        f"there is no product {intent.product}: search the catalog",
    )
    require(
        product is None or product.domain != consumer,
        "own_product",
        f"{intent.product} is {consumer}'s own product: no grant is needed",
    )
    # a request is known by this id for ever, far longer than ids of intents are remembered
    require(
        intent.meta.id not in context.image.access.requests,
        "request_exists",
        f"there is a request {intent.meta.id} already: use a fresh UUIDv7 for each intent",
    )
    opened = context.image.access.open_for(intent.product, intent.application)
    require(
        opened is None,
        "request_open",
        f"{intent.application} has an open request for {intent.product} already, "
        f"{opened and opened.request} in state {opened and opened.state}",
    )
    require_room(context, Kind.REQUESTS, consumer)
    return Accepted()


@judge.register
def _(intent: AccessGranted, context: DecisionContext) -> Verdict:
    access = _owned(context, intent.product, intent.request, "grant")
    require(
        access.state is State.REQUESTED,
        "not_requested",
        f"request {intent.request} is {access.state}: only a REQUESTED one can be granted; "
        "a consumer can ask again",
    )
    require(
        access.consumer not in context.image.identity.quarantines,
        "domain_quarantined",
        f"{access.consumer} is in quarantine: grant it after its release, or ask the operator",
    )
    names.note(intent.reason, "the reason")
    require(
        intent.on_revoke is not OnRevoke.UNKNOWN,
        "invalid_on_revoke",
        "on_revoke must be PURGE or RETAIN",
    )
    require_known(intent.engine)
    place = reading_place(context.image, access.product, access.application)
    if place.link is None:
        return Accepted()
    require_link_room(context, place.link, access.product)
    product = context.image.catalog[access.product]
    way = way_back(context.image, (place.cluster, place.topic), [(product.cluster, product.topic)])
    require(
        not way,
        "statement_cycle",
        f"what is read there comes back to {access.product}: "
        f"{' > '.join(topic for _, topic in way)}; delete one of the statements on the way",
    )
    return context.after(TARGET_FREE)


@judge.register
def _(intent: AccessDenied, context: DecisionContext) -> Verdict:
    access = _owned(context, intent.product, intent.request, "deny")
    names.text(intent.reason, "the reason")
    require(
        access.state is State.REQUESTED,
        "not_requested",
        f"request {intent.request} is {access.state}: only a REQUESTED one can be denied",
    )
    return Accepted()


@judge.register
def _(intent: AccessRevoked, context: DecisionContext) -> Verdict:
    access = _known(context, intent.product, intent.request)
    require(
        context.domain in (domain_of(access.product), access.consumer)
        or context.key.role is Role.OPERATOR,
        "not_your_domain",
        f"{context.domain} is neither the owner nor the consumer of this grant",
    )
    names.text(intent.reason, "the reason")
    require(
        access.state in ENTITLED,
        "not_granted",
        f"request {intent.request} is {access.state}: only a granted one can be revoked",
    )
    return Accepted()


def _known(context: DecisionContext, product: str, request: str) -> Access:
    access = context.image.access.requests.get(request)
    require(
        access is not None and access.product == product,
        "unknown_request",
        f"there is no request {request} for {product}: list the requests of the product",
    )
    assert access is not None  # noqa: S101 - for the type checker; `require` has refused
    return access


def _owned(context: DecisionContext, product: str, request: str, verb: str) -> Access:
    """The request, if the signer's domain owns the product and did not ask for it."""
    access = _known(context, product, request)
    require(
        context.domain != access.consumer,
        "own_request",
        f"{context.domain} may not {verb} its own request: {domain_of(product)} decides",
    )
    require(
        context.domain == domain_of(product),
        "not_your_domain",
        f"{context.domain} may not {verb} access to {product}: only {domain_of(product)} can",
    )
    return access
