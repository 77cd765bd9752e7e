"""What is asked of everything that a domain adds, stops, starts and deletes."""

from mesh_events.intents import domain_of
from projections.connectors.state import Connector
from projections.deciding.verdict import Accepted, DecisionContext, Verdict, require
from projections.identity import Role
from projections.links import Desired, Link
from projections.rules import names
from projections.statements import Statement


def own(context: DecisionContext, identity: str, kinds: str) -> str:
    """Refuse who is not the domain that a name belongs to; the domain. `kinds`: such as links."""
    domain = domain_of(identity)
    require(
        context.domain == domain,
        "not_your_domain",
        f"{context.domain} may not write {identity}: only {domain} can",
    )
    require(
        domain in context.image.identity.domains,
        "unknown_domain",
        f"{domain} is no registered domain, so it has no {kinds}",
    )
    return domain


def stop(context: DecisionContext, found: Statement | Connector, what: str, reason: str) -> Verdict:
    """May it be stopped? The operator may stop again what stands already, and holds it so."""
    names.note(reason, "the reason")
    holds = context.key.role is Role.OPERATOR and not found.held
    require(
        found.desired is Desired.RUNNING or holds,
        "not_running",
        f"the {what} {found.id} is stopped already",
    )
    return Accepted()


def start(
    context: DecisionContext, found: Statement | Connector, what: str, reason: str
) -> Verdict:
    """May it go on?"""
    names.note(reason, "the reason")
    require(found.desired is Desired.PAUSED, "not_stopped", f"the {what} {found.id} is not stopped")
    require_not_held(context, found, what)
    return Accepted()


def delete(
    context: DecisionContext, found: Statement | Connector, what: str, reason: str
) -> Verdict:
    """May it be deleted? Deleted and added again, it would run although it was stopped."""
    require_not_held(context, found, what)
    names.note(reason, "the reason")
    return Accepted()


def require_not_held(
    context: DecisionContext, found: Statement | Connector | Link | None, what: str
) -> None:
    """What the operator has stopped in an emergency nobody else lets go on."""
    require(
        found is None or not found.held or context.key.role is Role.OPERATOR,
        "held_by_operator",
        f"the operator has stopped the {what} {found and found.id}: ask the operator",
    )
