"""What an audit found: something that must not be, and where."""

from collections.abc import Iterable
from dataclasses import dataclass

ALTERED = {"record_edited", "record_deleted", "record_inserted"}
"""The codes of a log whose records are not those that were signed."""
OF_CHECKPOINTS = {"checkpoint_missing", "checkpoint_edited", "checkpoint_foreign"}
"""The codes of what is wrong with a place where checkpoints stand, and not with the log."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be; `code` is stable.

    `offset` is where it lies on the log, or where the range begins in which it lies; `last` is
    that range's last offset, None where the place is certain.
    """

    offset: int
    code: str
    text: str
    last: int | None = None


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """What was done to the log, then all else, each by offset.

    An altered record has consequences before it too: what it decided counts as undecided.
    """
    return sorted(findings, key=lambda one: (one.code not in ALTERED, one.offset))
