"""A fault, the verdict on it, and the bound in time that holds for both."""

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

Place = TypeVar("Place")
"""What a fault is injected into."""


class SkippedError(Exception):
    """This machine or this version lacks what the fault needs; says what."""


class TooLongError(Exception):
    """A fault and its checks took longer than their bound."""


class Outcome(StrEnum):
    """How a fault ended."""

    PASS = "PASS"
    FAIL = "FAIL"
    SKIPPED = "SKIPPED"


@dataclass(frozen=True)
class Fault(Generic[Place]):
    """One way to break a mesh.

    name: of the command line.
    sentence: what is done to whom.
    inject: does it, waits until the mesh is well again, and returns what it measured: the
        recovery time in seconds, None where the fault is not about one.
    checks: what must hold afterwards; returns what is wrong, [] where nothing is.
    bound_s: for both together, seconds.
    """

    name: str
    sentence: str
    inject: Callable[[Place], float | None]
    checks: Callable[[Place], list[str]]
    bound_s: float = 180


@dataclass(frozen=True)
class Verdict:
    """What became of a fault; times in seconds."""

    name: str
    sentence: str
    outcome: Outcome
    recovery_s: float | None = None
    took_s: float = 0
    reason: str = ""
    trace: str = field(default="", repr=False)

    def line(self) -> str:
        """One line for a terminal."""
        recovery = "" if self.recovery_s is None else f"{self.recovery_s:.1f} s"
        text = f"{self.outcome:<8}{self.name:<30}{recovery:>8}  {self.sentence}"
        return f"{text}\n        {self.reason}" if self.reason else text

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return asdict(self)


def judged(fault: Fault[Place], place: Callable[[], Place]) -> Verdict:
    """Inject a fault, look at what it did, and say how it ended; never raises for a fault.

    Args:
        fault: what to do.
        place: gives what it is done to; what this takes counts into the fault's bound.
    """
    began, recovery = time.monotonic(), None
    outcome, reason, trace = Outcome.PASS, "", ""
    try:
        with bounded(fault.bound_s):
            found = place()
            recovery = fault.inject(found)
            wrong = fault.checks(found)
        if wrong:
            outcome, reason = Outcome.FAIL, "; ".join(wrong)[:4000]
    except SkippedError as skipped:
        outcome, reason = Outcome.SKIPPED, str(skipped)
    except TooLongError:
        outcome = Outcome.FAIL
        reason, trace = f"not done within {fault.bound_s:g} s", traceback.format_exc()
    except Exception as error:  # noqa: BLE001 - whatever it is, the next fault comes
        outcome, trace = Outcome.FAIL, traceback.format_exc()
        reason = f"{type(error).__name__}: {error}"[:4000]
    took = time.monotonic() - began
    return Verdict(fault.name, fault.sentence, outcome, recovery, took, reason, trace)


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raise TooLongError in the main thread when the block lasts longer."""

    def over(_number: int, _frame: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
