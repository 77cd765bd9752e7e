"""Judging decisions again: each names its basis, and what it follows."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from mesh_events.decisions import (
    SEVERAL_CODES,
    Decision,
    IntentAccepted,
    IntentQuarantined,
    IntentRejected,
    RecordsSetAside,
)
from mesh_events.meta import milliseconds
from processors.governor.decision import version
from projections.deciding.decide import decide
from projections.deciding.speculation import decided
from projections.deciding.verdict import Accepted, Quarantined, Rejected, Verdict
from projections.image import EMPTY, Image
from self_service.cli.framework.finding import Finding

RULES_DIFFER = "rules_differ"
"""Code of a refusal that another version of the rules may have made."""
NOT_JUDGED = "not_judged"
"""Code of a decision against these rules under another version, whose rules nobody can ask here."""


MOST_IMAGES = 10_000
"""So many of the latest images are kept for the basis of the next decision."""
LONGEST_VERSION = 60
"""Characters of a version that a finding repeats: a stolen key may have named anything."""
Refold = Callable[[Image, int], Image]
"""(an earlier image, offset) -> the image at that offset, folded from the log again."""


class Judgements:
    """Rebuilds what the governor saw, while a log is folded.

    Kept are the image at the basis of the latest decision and the latest ones behind it. A basis
    that stands further back is folded again from there. Within an epoch no basis goes back, so no
    record is folded more than twice.

    Args:
        refold: folds again what is not kept; None keeps every image behind the latest basis.
    """

    def __init__(self, refold: Refold | None = None) -> None:
        self._refold = refold
        self._images: deque[Image] = deque(maxlen=None if refold is None else MOST_IMAGES)
        # the image at the latest basis, or at the start of the epoch
        self._behind = EMPTY
        self._basis = -1
        # the state behind the decisions of one basis, and those that it does not hold yet
        self._state = EMPTY
        self._pending: list[tuple[Decision, str]] = []

    def take(self, image: Image) -> None:
        """The log was folded up to here."""
        newest = self._images[-1] if self._images else self._behind
        if image.epoch != newest.epoch:
            # no decision that counts has a basis before its epoch
            self._images.clear()
            self._behind = image
        else:
            self._images.append(image)

    def state(self, event: Decision) -> Image | None:
        """What a decision was judged on; None where its basis does not hold what it follows."""
        if event.basis < self._basis:
            return None
        self._rest_on(event.basis)
        for before, signer in self._pending:
            self._state = decided(self._state, before, signer)
        self._pending.clear()
        return self._state if self._state.last_decision == event.follows else None

    def counted(self, event: Decision, signer: str) -> None:
        """A decision had its effect: what has the same basis is judged behind it."""
        if event.basis < self._basis:
            return
        self._rest_on(event.basis)
        self._pending.append((event, signer))

    def _rest_on(self, basis: int) -> None:
        if basis == self._basis:
            return
        images = self._images
        if len(images) == images.maxlen and basis < images[0].offset and self._refold is not None:
            self._behind = self._refold(self._behind, basis)
        while images and images[0].offset <= basis:
            self._behind = images.popleft()
        self._basis, self._state = basis, self._behind
        self._pending.clear()


def doubted(
    state: Image | None, event: Decision, offset: int, *, governor_version: str
) -> Finding | None:
    """What is wrong with a decision, judged again on its state and at its time; None for nothing.

    Args:
        state: what it was judged on, None where its basis does not hold what it follows.
        event: the decision.
        offset: where it stands.
        governor_version: of the software that the governor named when it started.
    """
    if state is not None and isinstance(event, RecordsSetAside):
        return _doubted_range(state, event, offset, governor_version)
    verdict = _verdict(state, event) if state is not None else None
    if verdict is None:
        text = (
            f"the decision on {event.offset} names basis {event.basis}, which does not hold what "
            "it decides or follows"
        )
        return Finding(offset, "bad_basis", text)
    if _outcome(verdict) == _decided(event):
        return None
    what, today = f"the record at {event.offset} was", str(_outcome(verdict))
    if isinstance(event, IntentAccepted):
        if isinstance(verdict, Quarantined):
            text = f"{what} accepted, but: {verdict.reason}"
            return Finding(offset, "accepted_untrusted", text)
        code, text = "accepted_against_rules", f"{what} accepted"
    elif isinstance(event, IntentQuarantined) and not isinstance(verdict, Quarantined):
        code, text = "usable_set_aside", f"{what} set aside as {event.code!r}"
    elif governor_version == version():
        code, text = "refused_against_rules", f"{what} {_decided(event)}"
    else:
        return Finding(offset, RULES_DIFFER, f"{what} {_decided(event)}, today's rules say {today}")
    text = f"{text}, but the rules of {version()} say {today}"
    return _against_rules(code, text, offset, governor_version)


def _against_rules(code: str, text: str, offset: int, governor_version: str) -> Finding:
    """A finding, as far as the rules of the governor's version are those of this software."""
    if governor_version == version():
        return Finding(offset, code, text)
    text = (
        f"{text}; its governor named version {governor_version[:LONGEST_VERSION]!r}, whose rules "
        "this software does not have: verify with that version, or name it with --other-version"
    )
    return Finding(offset, NOT_JUDGED, text)


def _doubted_range(
    state: Image, event: RecordsSetAside, offset: int, governor_version: str
) -> Finding | None:
    """Are all records of a range unusable, and are they counted rightly?"""
    swallowed = event.among(state.intents.undecided)
    run = state.intents.unusable.runs.get(event.offset)
    told = (event.last, tuple(event.exceptions), event.counts)
    if swallowed:
        code, text = "usable_set_aside", f"sets the usable record at {min(swallowed)} aside"
    elif run is None or told != (run.last, run.exceptions, dict(run.counts)):
        code, text = "range_differs", "does not match the unusable records in it"
    else:
        return None
    text = f"the range from {event.offset} to {event.last} {text}"
    return _against_rules(code, text, offset, governor_version)


def _verdict(state: Image, event: Decision) -> Verdict | None:
    """What today's rules say of what a decision is on; None where the state does not hold it."""
    intents = state.intents
    if (asked := intents.undecided.get(event.offset)) is not None:
        waited = event.waited if isinstance(event, IntentRejected) else 0
        return decide(state, asked, milliseconds(event.clock), waited, event.worker_skew)
    if not intents.unusable.holds(event.offset):
        return None
    fault = intents.unusable.fault_at(event.offset)
    if fault is None:
        return Quarantined(SEVERAL_CODES, "it is in a range of unusable records")
    return Quarantined(fault.code, fault.reason)


class _Outcome(NamedTuple):
    """What came of a record: `act` is one of ours, `code` may be any text that was signed."""

    act: str
    code: str = ""

    def __str__(self) -> str:
        return f"{self.act} as {self.code!r}" if self.code else self.act


def _outcome(verdict: Verdict) -> _Outcome:
    match verdict:
        case Accepted():
            return _Outcome("accepted")
        case Rejected():
            return _Outcome("refused", verdict.code)
        case Quarantined():
            return _Outcome("set aside", verdict.code)
        case _:
            return _Outcome(f"waiting for {', '.join(verdict.checks)}")


def _decided(event: Decision) -> _Outcome:
    match event:
        case IntentRejected():
            return _Outcome("refused", event.code)
        case IntentQuarantined():
            return _Outcome("set aside", event.code)
        case _:
            return _Outcome("accepted")
