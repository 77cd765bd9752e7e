"""Rules for emergencies: the operator silences domains or cuts them off, a domain only itself."""

from mesh_events.intents import DomainFrozen, DomainQuarantined, DomainReleased, DomainThawed
from mesh_events.meta import MESH_DOMAIN, milliseconds
from projections.deciding.verdict import Accepted, DecisionContext, Verdict, require
from projections.identity import Role
from projections.rules import names
from projections.rules.parties import require_operator
from projections.rules.registry import judge

LONGEST_MS = 366 * 24 * 60 * 60 * 1000
"""A freeze is for an emergency, and ends by itself."""


@judge.register
def _(intent: DomainFrozen, context: DecisionContext) -> Verdict:
    require(
        context.key.role is Role.OPERATOR or context.domain == intent.domain,
        "not_your_domain",
        f"{context.domain} may not freeze {intent.domain}: only the operator can",
    )
    _known(context, intent.domain)
    names.text(intent.reason, "the reason")
    until, length, told = _end(intent, context)
    # a clock that is wrong must not keep the operator from stopping a domain
    ends_later = until > context.clock or context.image.clocks_disagree
    require(
        ends_later and 0 < length <= LONGEST_MS,
        "invalid_end",
        f"a freeze ends in the future and within a year, but {told} does not",
    )
    before = context.image.identity.freezes.get(intent.domain)
    in_force = before is not None and before.holds_at(context.image.ended_by(context.clock))
    require(
        before is None or not in_force or until >= before.until,
        "frozen_longer",
        f"{intent.domain} is frozen for longer already: to end that earlier, thaw it first",
    )
    return Accepted()


@judge.register
def _(intent: DomainThawed, context: DecisionContext) -> Verdict:
    require_operator(context, "end a freeze")
    _known(context, intent.domain)
    names.text(intent.reason, "the reason")
    freeze = context.image.identity.freezes.get(intent.domain)
    require(freeze is not None, "not_frozen", f"{intent.domain} is not frozen")
    assert freeze is not None  # noqa: S101 - for the type checker; `require` has refused
    # accepted, it would say that the freeze had been in force until then
    require(
        freeze.holds_at(context.image.ended_by(context.appended)),
        "not_frozen",
        f"the freeze of {intent.domain} has ended by itself already",
    )
    return Accepted()


@judge.register
def _(intent: DomainQuarantined, context: DecisionContext) -> Verdict:
    require_operator(context, "put a domain into quarantine")
    _one(context, intent.domain)
    names.text(intent.reason, "the reason")
    require(
        intent.domain not in context.image.identity.quarantines,
        "quarantined_already",
        f"{intent.domain} is in quarantine already",
    )
    return Accepted()


@judge.register
def _(intent: DomainReleased, context: DecisionContext) -> Verdict:
    require_operator(context, "release a domain")
    _one(context, intent.domain)
    names.text(intent.reason, "the reason")
    require(
        intent.domain in context.image.identity.quarantines,
        "not_quarantined",
        f"{intent.domain} is not in quarantine",
    )
    return Accepted()


def _end(intent: DomainFrozen, context: DecisionContext) -> tuple[int, int, str]:
    """When it ends by the mesh's clock, how long it lasts, and how it says so."""
    if intent.duration_ms is not None:
        end = context.image.latest(context.clock) + intent.duration_ms
        return end, intent.duration_ms, f"one of {intent.duration_ms} ms"
    until = milliseconds(intent.until)
    return until, until - milliseconds(intent.meta.time), intent.until.isoformat()


def _one(context: DecisionContext, domain: str) -> None:
    require(
        domain in context.image.identity.domains,
        "unknown_domain",
        f"there is no domain {domain}: list them",
    )


def _known(context: DecisionContext, domain: str) -> None:
    require(
        domain == MESH_DOMAIN or domain in context.image.identity.domains,
        "unknown_domain",
        f"there is no domain {domain}: list them, or say {MESH_DOMAIN} for all of them",
    )
