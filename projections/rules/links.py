"""Rules for links: they serve grants, and both sides may hold or end them."""

from mesh_events.intents import (
    Engine,
    LinkCreated,
    LinkDeleted,
    LinkIntent,
    LinkPaused,
    LinkResumed,
    domain_of,
)
from projections.access import ENTITLED, State
from projections.deciding.derived import resumption
from projections.deciding.verdict import Accepted, DecisionContext, Verdict, require
from projections.identity import Role
from projections.links import Desired, Link, link_id
from projections.quotas.kinds import Kind
from projections.rules import life, names
from projections.rules.quotas import require_room
from projections.rules.registry import judge


@judge.register
def _(intent: LinkCreated, context: DecisionContext) -> Verdict:
    name = link_id(intent.product, intent.cluster)
    _party(context, intent)
    names.note(intent.reason, "the reason")
    link = context.image.links.get(name)
    require(
        link is None or link.desired is Desired.DELETED,
        "link_exists",
        f"the link {name} exists already: delete it first to make its copy anew",
    )
    life.require_not_held(context, link, "link")
    require_known(intent.engine)
    require(
        link is None or link.is_over or link.engine is intent.engine,
        "link_busy",
        f"the link {name} is still being deleted by {link and link.engine}: another engine can "
        "take it when it is gone",
    )
    require(
        any(access.state in ENTITLED for access in context.image.access.of_link(name)),
        "no_grant",
        f"no grant needs the link {name}: a link follows from a grant to another cluster",
    )
    require_link_room(context, name, intent.product)
    return Accepted()


@judge.register
def _(intent: LinkPaused, context: DecisionContext) -> Verdict:
    link = _standing(context, intent)
    names.note(intent.reason, "the reason")
    require(
        link.desired is Desired.RUNNING or _may_pause_again(context, link),
        "not_running",
        f"the link {link.id} is paused already, by {link.paused_by}",
    )
    return Accepted()


@judge.register
def _(intent: LinkResumed, context: DecisionContext) -> Verdict:
    link = _standing(context, intent)
    names.note(intent.reason, "the reason")
    require(link.desired is Desired.PAUSED, "not_paused", f"the link {link.id} is not paused")
    life.require_not_held(context, link, "link")
    # somebody may have paused it anew since the governor saw the grant
    require(
        context.key.role is not Role.GOVERNOR or resumption(context.image, link) is not None,
        "no_grant",
        f"no grant ends the pause of the link {link.id}",
    )
    if intent.engine is not None:
        require_known(intent.engine)
        require(
            link.is_at_rest or link.engine is intent.engine,
            "link_busy",
            f"{link.engine} has not let go of the link {link.id} yet: wait until it is PAUSED",
        )
    return Accepted()


@judge.register
def _(intent: LinkDeleted, context: DecisionContext) -> Verdict:
    link = _standing(context, intent)
    names.note(intent.reason, "the reason")
    # a grant may have been decided since the governor saw the last one end
    require(
        context.key.role is not Role.GOVERNOR or not _needed(context, link.id),
        "still_granted",
        f"a grant needs the link {link.id}: it ends with the last grant",
    )
    return Accepted()


def require_known(engine: Engine) -> None:
    """Refuse an engine of a newer mesh."""
    require(engine is not Engine.UNKNOWN, "invalid_engine", "engine must be SPARK or MIRRORMAKER")


def require_link_room(context: DecisionContext, name: str, product: str) -> None:
    """Refuse what needs one more link of the product's domain than it may have."""
    link = context.image.links.get(name)
    if link is None or link.is_over:
        require_room(context, Kind.LINKS, domain_of(product), kept=0 if link is not None else 1)


def _may_pause_again(context: DecisionContext, link: Link) -> bool:
    """The owner may pause what a reader has paused, the operator what is not held yet."""
    if context.key.role is Role.OPERATOR:
        return not link.held
    return context.domain == domain_of(link.product) and link.is_paused_by_reader


def _needed(context: DecisionContext, name: str) -> bool:
    """Whether a grant over this link is in force, or its rights are not seen gone yet."""
    return any(
        access.state in ENTITLED or access.state is State.REVOKING
        for access in context.image.access.of_link(name)
    )


def _standing(context: DecisionContext, intent: LinkIntent) -> Link:
    name = link_id(intent.product, intent.cluster)
    _party(context, intent)
    link = context.image.links.get(name)
    require(link is not None, "unknown_link", f"there is no link {name}: list the links")
    require(
        link is None or link.desired is not Desired.DELETED,
        "link_deleted",
        f"the link {name} was deleted: create it again while a grant needs it",
    )
    assert link is not None  # noqa: S101 - for the type checker; `require` has refused
    return link


def _party(context: DecisionContext, intent: LinkIntent) -> None:
    """Owner, operator and governor may speak about a link; a consumer if nobody else uses it."""
    name = link_id(intent.product, intent.cluster)
    consumers = {
        access.consumer for access in context.image.access.of_link(name) if access.state in ENTITLED
    }
    owner = domain_of(intent.product)
    require(
        context.key.role in (Role.GOVERNOR, Role.OPERATOR)
        or context.domain == owner
        or consumers == {context.domain},
        "not_your_domain",
        f"{context.domain} neither owns {intent.product} nor is its only reader at "
        f"{intent.cluster}: ask {owner}",
    )
