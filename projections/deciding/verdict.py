"""What deciding an intent can come to, and what a rule gets to see."""

from collections.abc import Mapping
from dataclasses import dataclass

from mesh_events.facts import Check, CheckFailed
from projections.identity import Key
from projections.image import Image


@dataclass(frozen=True, slots=True)
class Accepted:
    """The intent takes effect."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The intent is refused; `code` is stable, the reason names the next step."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The record could not be understood or trusted."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The intent needs these checks before it can be decided."""

    checks: tuple[str, ...]


Verdict = Accepted | Rejected | Quarantined | Waiting


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What a rule knows besides the intent: the state, the signer's key, the checks so far.

    `clock` is the mesh's time of the decision, ms; `appended` that of the record, which may have
    waited for a governor.
    """

    image: Image
    key: Key
    domain: str
    checks: Mapping[str, Check]
    clock: int
    appended: int

    def after(self, *names: str) -> Verdict:
        """Accept once all the named checks have passed; refuse with the first one that failed.

        The first as they are named, whichever came out first: the same mistake is told the same.
        """
        missing = tuple(name for name in names if name not in self.checks)
        for name in names:
            outcome = self.checks.get(name)
            if outcome is None:
                return Waiting(missing)
            if isinstance(outcome, CheckFailed):
                return Rejected(outcome.code, outcome.reason)
        return Accepted()


class Refusal(Exception):  # noqa: N818 - it is the rule's answer, not an error of the program
    """Raised inside a rule to refuse; never leaves `decide`."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.rejected = Rejected(code, reason)


def require(condition: object, code: str, reason: str) -> None:
    """Refuse the intent unless `condition` holds."""
    if not condition:
        raise Refusal(code, reason)
