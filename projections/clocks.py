"""Whose clock is wrong, as far as the log shows it: a finding for people."""

from dataclasses import dataclass

from projections.image import TOLERANCE_MS, Image

CLOCKS_DISAGREE = "clocks_disagree"
"""Code of the finding."""


def if_wrong(appended: int, time: int) -> int | None:
    """A record's append time, ms, where it is off the mesh's `time` by more than `TOLERANCE_MS`."""
    return appended if abs(appended - time) > TOLERANCE_MS else None


@dataclass(frozen=True, slots=True)
class ClockFinding:
    """Clocks that differ by more than `TOLERANCE_MS`.

    mesh: the mesh's time of the last decision, ms since 1970.
    broker, worker: what the clock of the broker that leads the log, and that of the governor's
        machine, showed at that moment, ms since 1970.
    text: which of them differ, and by how much.
    next: what to do.
    """

    code: str
    mesh: int
    broker: int
    worker: int
    text: str
    next: str


def clock_finding(image: Image) -> ClockFinding | None:
    """What the log shows at the image's offset; None where the clocks agree."""
    if not image.clocks_disagree:
        return None
    skews = {
        "the broker that leads mesh.governance": image.skew,
        "the governor's machine": image.worker_skew,
    }
    wrong = {who: skew for who, skew in skews.items() if abs(skew) > TOLERANCE_MS}
    told = " and ".join(f"{who} is {_off(skew)}" for who, skew in wrong.items())
    return ClockFinding(
        CLOCKS_DISAGREE,
        image.clock,
        image.clock + image.skew,
        image.clock + image.worker_skew,
        f"{told} the mesh's clock: no further freeze ends and no id is forgotten until they agree",
        _next(wrong, agreed=abs(image.skew - image.worker_skew) <= TOLERANCE_MS),
    )


def _next(wrong: dict[str, int], *, agreed: bool) -> str:
    if len(wrong) > 1 and agreed:
        return "if that is the right time, wait until the mesh's clock is reached; else set both"
    return f"set the clock of {' and of '.join(wrong)} (NTP); if it is right, set the other one"


def _off(skew: int) -> str:
    seconds = abs(skew) // 1000
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes)
    return f"{' '.join([*parts, f'{seconds % 60} s'])} {'ahead of' if skew > 0 else 'behind'}"
