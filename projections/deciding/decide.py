"""The decision on one undecided record: pure, in the order in which a reader would doubt it.

First whether the record can be understood and trusted, then whether it is new, then whether its
signer may act for the domain, then the rule for the intent.
"""

from datetime import UTC, datetime
from typing import NamedTuple

from immutables import Map

from mesh_events.errors import RefusedError
from mesh_events.intents import Intent
from mesh_events.meta import MESH_DOMAIN, milliseconds, require_actor
from mesh_events.record import Entry, FaultCode
from projections.deciding.derived import DERIVED
from projections.deciding.intents import AHEAD_MS, WINDOW_MS, duplicate_of, too_old
from projections.deciding.unusable import untrusted
from projections.deciding.verdict import (
    DecisionContext,
    Quarantined,
    Refusal,
    Rejected,
    Verdict,
    Waiting,
)
from projections.identity import Key, Role
from projections.image import Image
from projections.rules import (  # noqa: F401 - they fill the table
    access,
    catalog,
    connectors,
    freezes,
    identity,
    links,
    statements,
)
from projections.rules.registry import judge

LONGEST_ID = 200
"""Characters that an id in `meta` may have."""
CHECK_TIMEOUT_MS = 60 * 1000
"""How long an intent waits for its checks, counted while a governor runs."""
CHECK_TIMEOUT = "check_timeout"
"""Code of the refusal of an intent that has waited so long."""


def decide(
    image: Image, entry: Entry, clock: int, waited: int = 0, worker_skew: int | None = None
) -> Verdict:
    """What becomes of an undecided record.

    Args:
        image: what the judgement sees.
        entry: the record.
        clock: the mesh's time of the decision, ms.
        waited: how long this governor has waited for the checks of the record, ms.
        worker_skew: how far the governor's machine is ahead of `clock`, ms; None: as in `image`.
    """
    if worker_skew is not None:
        image = image._replace(worker_skew=worker_skew)
    found = _claim(image, entry)
    if not isinstance(found, _Claim):
        return found
    unfit = _mistimed(image, found, clock) or _frozen(image, found, clock)
    if unfit is not None:
        return unfit
    verdict = found.judge(image, clock)
    if isinstance(verdict, Waiting) and waited > CHECK_TIMEOUT_MS:
        return Rejected(
            CHECK_TIMEOUT,
            f"no outcome of {', '.join(verdict.checks)} within {CHECK_TIMEOUT_MS // 1000} s: "
            "see that the servers are up, then emit it again",
        )
    return verdict


class _Claim(NamedTuple):
    """An intent that its signer may make, as far as time does not matter."""

    entry: Entry
    intent: Intent
    key: Key

    def appended(self, clock: int) -> int:
        """When it was appended, ms: never behind the decision's `clock`."""
        return min(clock, self.entry.time)

    def judge(self, image: Image, clock: int) -> Verdict:
        """What the rule for the intent says."""
        checks = image.intents.checks.get(self.entry.offset, Map())
        try:
            context = DecisionContext(
                image, self.key, self.key.domain, checks, clock, self.appended(clock)
            )
            return judge(self.intent, context)
        except Refusal as refusal:
            return refusal.rejected


def _claim(image: Image, entry: Entry) -> _Claim | Rejected | Quarantined:
    """The intent of a record, or why it is none whatever the time."""
    fault = untrusted(image.identity, entry)
    if fault is not None:
        return Quarantined(fault.code, fault.reason)
    intent, key = entry.event, image.identity.key_of(entry.signer)
    if not isinstance(intent, Intent) or key is None:
        return Quarantined(FaultCode.INVALID_EVENT, "the record is not an intent")
    unfit = (
        _overlong(intent)
        or _repeated(image, entry, intent)
        or _not_theirs(intent, key)
        or _not_of_role(intent, key)
        or _cut_off(image, key)
    )
    return unfit or _Claim(entry, intent, key)


def _repeated(image: Image, entry: Entry, intent: Intent) -> Rejected | None:
    first = image.intents.first_offset(entry.signer, intent.meta.id)
    if first is not None and first != entry.offset:
        return Rejected(FaultCode.DUPLICATE_INTENT.value, duplicate_of(first))
    return None


def _mistimed(image: Image, claim: _Claim, clock: int) -> Rejected | None:
    """Whether an intent is too old, or of the future; the governor's own never is.

    An intent is too old or too early by all clocks, the mesh's, the broker's and the governor's
    machine's, or it is not: none of them that is wrong refuses an intent whose own time is right.
    Ids are forgotten by the mesh's clock alone: an old copy never becomes young by a broker's.
    While the clocks disagree only an intent whose id may have been forgotten is too old.
    """
    if claim.key.role is Role.GOVERNOR:
        return None
    entry, made = claim.entry, milliseconds(claim.intent.meta.time)
    age = min(clock, entry.time) - made
    if made < image.intents.horizon if image.clocks_disagree else age > WINDOW_MS:
        return Rejected(FaultCode.STALE_INTENT.value, too_old(age))
    ahead = made - max(clock, entry.time, clock + image.worker_skew)
    if ahead > AHEAD_MS:
        return Rejected(
            "clock_ahead", f"made {ahead // 1000} s in the future: set the emitter's clock"
        )
    return None


def _not_theirs(intent: Intent, key: Key) -> Rejected | None:
    """Whether the signer claims to be another domain, a part of the mesh, nobody, or no id."""
    actor = intent.meta.actor
    if intent.meta.domain != key.domain:
        return Rejected(
            "not_your_domain",
            f"the record speaks for {intent.meta.domain}, but its key is {key.domain}'s",
        )
    if not actor.strip():
        return Rejected("missing_text", "meta.actor is empty: say who or what speaks")
    try:
        require_actor(actor, key.domain)
    except RefusedError as refused:
        return Rejected(refused.code, str(refused))
    return None


def _not_of_role(intent: Intent, key: Key) -> Rejected | None:
    """Whether a key that reports, or says only what follows from the state, asks for more."""
    if key.role in (Role.DOMAIN, Role.OPERATOR):
        return None
    if key.role is Role.GOVERNOR and isinstance(intent, DERIVED):
        return None
    return Rejected(
        "wrong_role",
        f"{intent.type_name()} is nothing for the {key.role}'s key: "
        "have a domain or the operator emit it",
    )


def _cut_off(image: Image, key: Key) -> Rejected | None:
    """Whether the signer is in quarantine; the mesh's own parts never are."""
    quarantine = image.identity.quarantines.get(key.domain)
    if quarantine is None or key.domain == MESH_DOMAIN:
        return None
    return Rejected(
        "domain_quarantined",
        f"{quarantine.by} has put {key.domain} into quarantine: {quarantine.reason}; "
        "ask the operator",
    )


def _frozen(image: Image, claim: _Claim, clock: int) -> Rejected | None:
    """Whether the signer's domain is frozen, or was at the append; the mesh's own never is.

    While clocks disagree no further freeze ends by itself.
    """
    domain = claim.key.domain
    if domain == MESH_DOMAIN:
        return None
    time = image.ended_by(claim.appended(clock))
    freeze = image.identity.freeze_of(domain, time)
    if freeze is None:
        return None
    until = datetime.fromtimestamp(freeze.until / 1000, UTC).isoformat(timespec="seconds")
    return Rejected(
        "domain_frozen",
        f"{freeze.by} froze {freeze.domain} until {until}: {freeze.reason}; "
        "say it again afterwards, or ask the operator",
    )


def _overlong(intent: Intent) -> Rejected | None:
    """Ids are repeated in decisions, facts and rows, which must stay small enough to be read."""
    for name in ("domain", "actor", "correlation", "causation", "producer"):
        length = len(getattr(intent.meta, name) or "")
        if length > LONGEST_ID:
            return Rejected(
                "text_too_long",
                f"meta.{name} has {length} characters, at most {LONGEST_ID} are kept for ever",
            )
    return None
