"""Rules for quotas: what a domain has of each kind is bounded, since the mesh keeps it for ever."""

from projections.deciding.verdict import DecisionContext, require
from projections.identity import Role
from projections.quotas.kinds import Kind, Used

_NEXT = {
    Kind.KEYS: "revoke a key that is not needed, or ",
    Kind.REQUESTS: "revoke a grant that is not needed, or ",
    Kind.STATEMENTS: "delete a statement that is not needed, or ",
    Kind.CONNECTORS: "delete a connector that is not needed, or ",
    Kind.LINKS: "revoke the grants of a link that is not needed, or ",
}


def require_room(context: DecisionContext, kind: Kind, domain: str, kept: int = 1) -> None:
    """Refuse a domain's intent that would exceed a bound of the domain `domain`.

    Operator and governor have no bounds; what they make counts to the domain.

    Args:
        context: the state, and whose key signed the intent.
        kind: what the intent makes one more of.
        domain: to which it counts.
        kept: so many more are kept: none where one of that name was there and filled no more.
    """
    if context.key.role in (Role.OPERATOR, Role.GOVERNOR):
        return
    used = context.image.counts.get((domain, kind), Used())
    most = context.image.bounds.quotas.of(kind)
    ask = f"ask the operator to raise {kind.setting}"
    require(
        used.standing < most.standing,
        "quota_exceeded",
        f"{domain} has {used.standing} {kind}, and may have {most.standing}: "
        f"{_NEXT.get(kind, '')}{ask}",
    )
    require_record(context, kind, domain, kept)


def require_record(context: DecisionContext, kind: Kind, domain: str, more: int) -> None:
    """Refuse what would keep so many more of a kind on record for ever, ended or replaced."""
    used = context.image.counts.get((domain, kind), Used())
    most = context.image.bounds.quotas.of(kind)
    require(
        not more
        or used.kept + more <= most.kept
        or context.key.role in (Role.OPERATOR, Role.GOVERNOR),
        "quota_exceeded",
        f"{domain} has had {used.kept} {kind}, those that have ended among them and, one by one, "
        f"what earlier texts or configs have filled; this is {more} more, and {most.kept} may be, "
        f"since each is kept for ever: ask the operator to raise {kind.setting}",
    )
