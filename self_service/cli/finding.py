"""What an audit found: something that must not be, and where."""

from dataclasses import dataclass


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
