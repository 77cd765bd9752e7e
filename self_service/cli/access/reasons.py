"""Why an application may read a product or may not: what was decided, then what was seen. Pure."""

from collections.abc import Iterable, Iterator

from mesh_events.intents import domain_of
from mesh_events.rows import LinkState
from processors.clusters.rights import EVERYBODY, Acl
from projections.access import ENTITLED, Access
from projections.image import Image
from projections.links import Desired

_READING = ("read", "all")
_DRIFT = "see `sdm drift`"
_OWN = "OWN"
"""Stands in for a state where no request is needed."""
_STILL = frozenset({LinkState.FAILED, LinkState.PAUSED})
"""States of a link in which a copy does not grow."""


def why(
    image: Image, product: str, application: str, access: Access | None, enforced: bool | None
) -> str:
    """The decision, and what is so besides.

    Args:
        image: of the time asked about.
        product: one of the image's.
        application: one of the image's.
        access: the latest request of the one for the other.
        enforced: whether rights to read are there; None if nobody could look.
    """
    clauses = [_decision(access, product, application)]
    domain = domain_of(application)
    quarantine = image.identity.quarantines.get(domain)
    if enforced is None:
        clauses.append("the ACLs could not be checked")
    elif quarantine is None or enforced:
        state = access.state.value if access else ""
        if access is None and domain == domain_of(product):
            state = _OWN
        clauses.extend(_rights(state, enforced))
    if quarantine is not None:
        clauses.append(f"{domain} is in quarantine: {quarantine.reason}")
    clauses.extend(_of_copy(image, access))
    return "; ".join(clauses)


def allow_reading(acls: Iterable[Acl], topic: str, principal: str) -> tuple[bool, list[Acl]]:
    """Whether ACLs let a principal read a topic, and those about it, as Kafka's authorizer has it.

    A denial beats what allows, and what holds for everybody holds for the principal. One that holds
    only for some hosts is shown, and leaves the answer as it is for the others.
    """
    about = sorted(
        acl
        for acl in acls
        if acl.resource == "topic" and acl.principal in (principal, EVERYBODY) and acl.covers(topic)
    )
    reading = [acl for acl in about if acl.operation in _READING]
    allowed = any(not acl.denies for acl in reading)
    return allowed and not any(acl.denies and acl.host == EVERYBODY for acl in reading), about


def _decision(access: Access | None, product: str, application: str) -> str:
    if access is None:
        owner = domain_of(product)
        if domain_of(application) == owner:
            return (
                f"{product} is {owner}'s own product, which all of {owner}'s applications may read"
            )
        return f"{application} never requested {product}"
    match access.state:
        case "REQUESTED":
            return f"requested at offset {access.offset}, {domain_of(product)} has not decided"
        case "DENIED":
            return f"denied by {access.decided_by}: {access.decision_reason}"
        case "GRANTED" | "ACTIVE":
            return f"granted by {access.decided_by}"
        case _:
            return f"revoked by {access.revoked_by}: {access.revoke_reason}"


def _rights(state: str, enforced: bool) -> Iterator[str]:
    """What was seen of the rights, where it says more than the decision."""
    match state, enforced:
        case (("GRANTED" | "ACTIVE" | "OWN"), True):
            yield "the ACLs are applied"
        case (("ACTIVE" | "OWN"), False):
            yield f"the ACLs are missing: {_DRIFT}"
        case "GRANTED", False:
            yield "the ACLs are not applied"
        case "REVOKING", True:
            yield "the ACLs are not removed yet"
        case "REVOKING", False:
            yield "the ACLs are removed, and the controller has yet to report it"
        case _, True:
            yield f"an ACL allows reading all the same: {_DRIFT}"


def _of_copy(image: Image, access: Access | None) -> Iterator[str]:
    link = image.links.get(access.link or "") if access and access.state in ENTITLED else None
    if link is None:
        return
    if link.desired is Desired.DELETED:
        again = f"`sdm link create {link.product} --cluster {link.cluster}`"
        yield f"its link was deleted: {again} recreates the copy"
    elif link.failure_code == "destination_lost":
        yield f"the copy was deleted or recreated: {link.failure}"
    elif link.state in _STILL:
        failure = f": {link.failure}" if link.failure else ""
        yield f"the copy is not updated, link {link.id} is {link.shown_state}{failure}"
