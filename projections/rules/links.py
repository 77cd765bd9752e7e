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
from projections.deciding.consequences import resumption
from projections.deciding.verdict import Accepted, Case, Verdict, require
from projections.identity import Role
from projections.links import Desired, Link, link_id
from projections.quotas.kinds import Kind
from projections.rules import life, names
from projections.rules.quotas import require_room
from projections.rules.ruling import judge


@judge.register
def _(intent: LinkCreated, case: Case) -> Verdict:
    name = link_id(intent.product, intent.cluster)
    _party(case, intent)
    names.note(intent.reason, "the reason")
    link = case.image.links.get(name)
    require(
        link is None or link.desired is Desired.DELETED,
        "link_exists",
        f"the link {name} exists already: delete it first to make its copy anew",
    )
    life.require_not_held(case, link, "link")
    require_known(intent.engine)
    require(
        link is None or link.is_over or link.engine is intent.engine,
        "link_busy",
        f"the link {name} is still being deleted by {link and link.engine}: another engine can "
        "take it when it is gone",
    )
    require(
        any(access.state in ENTITLED for access in case.image.access.of_link(name)),
        "no_grant",
        f"no grant needs the link {name}: a link follows from a grant to another cluster",
    )
    require_link_room(case, name, intent.product)
    return Accepted()


@judge.register
def _(intent: LinkPaused, case: Case) -> Verdict:
    link = _standing(case, intent)
    names.note(intent.reason, "the reason")
    require(
        link.desired is Desired.RUNNING or _may_pause_again(case, link),
        "not_running",
        f"the link {link.id} is paused already, by {link.paused_by}",
    )
    return Accepted()


@judge.register
def _(intent: LinkResumed, case: Case) -> Verdict:
    link = _standing(case, intent)
    names.note(intent.reason, "the reason")
    require(link.desired is Desired.PAUSED, "not_paused", f"the link {link.id} is not paused")
    life.require_not_held(case, link, "link")
    # somebody may have paused it anew since the governor saw the grant
    require(
        case.key.role is not Role.GOVERNOR or resumption(case.image, link) is not None,
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
def _(intent: LinkDeleted, case: Case) -> Verdict:
    link = _standing(case, intent)
    names.note(intent.reason, "the reason")
    # a grant may have been decided since the governor saw the last one end
    require(
        case.key.role is not Role.GOVERNOR or not _needed(case, link.id),
        "still_granted",
        f"a grant needs the link {link.id}: it ends with the last grant",
    )
    return Accepted()


def require_known(engine: Engine) -> None:
    """Refuse an engine of a newer mesh."""
    require(engine is not Engine.UNKNOWN, "invalid_engine", "engine must be SPARK or MIRRORMAKER")


def require_link_room(case: Case, name: str, product: str) -> None:
    """Refuse what needs one more link of the product's domain than it may have."""
    link = case.image.links.get(name)
    if link is None or link.is_over:
        require_room(case, Kind.LINKS, domain_of(product), kept=0 if link is not None else 1)


def _may_pause_again(case: Case, link: Link) -> bool:
    """The owner may pause what a reader has paused, the operator what is not held yet."""
    if case.key.role is Role.OPERATOR:
        return not link.held
    return case.domain == domain_of(link.product) and link.is_paused_by_reader


def _needed(case: Case, name: str) -> bool:
    """Whether a grant over this link is in force, or its rights are not seen gone yet."""
    return any(
        access.state in ENTITLED or access.state is State.REVOKING
        for access in case.image.access.of_link(name)
    )


def _standing(case: Case, intent: LinkIntent) -> Link:
    name = link_id(intent.product, intent.cluster)
    _party(case, intent)
    link = case.image.links.get(name)
    require(link is not None, "unknown_link", f"there is no link {name}: list the links")
    require(
        link is None or link.desired is not Desired.DELETED,
        "link_deleted",
        f"the link {name} was deleted: create it again while a grant needs it",
    )
    assert link is not None  # noqa: S101 - for the type checker; `require` has refused
    return link


def _party(case: Case, intent: LinkIntent) -> None:
    """Owner, operator and governor may speak about a link; a consumer if nobody else uses it."""
    name = link_id(intent.product, intent.cluster)
    consumers = {
        access.consumer for access in case.image.access.of_link(name) if access.state in ENTITLED
    }
    owner = domain_of(intent.product)
    require(
        case.key.role in (Role.GOVERNOR, Role.OPERATOR)
        or case.domain == owner
        or consumers == {case.domain},
        "not_your_domain",
        f"{case.domain} neither owns {intent.product} nor is its only reader at {intent.cluster}: "
        f"ask {owner}",
    )
