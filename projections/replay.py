"""Replaying the log: from records to the image at any offset or time."""

from collections.abc import Iterable, Iterator

from mesh_events.codec import decode
from mesh_events.record import Record
from projections.fold import apply
from projections.image import EMPTY, Image


def fold(
    records: Iterable[Record], image: Image = EMPTY, *, verify: bool = True
) -> Iterator[Image]:
    """The image after each record; schemas are learnt from the log on the way."""
    for record in records:
        image = apply(image, decode(record, image.schemas, verify=verify))
        yield image


def replay(
    records: Iterable[Record],
    image: Image = EMPTY,
    *,
    at_offset: int | None = None,
    as_of: int | None = None,
    verify: bool = True,
) -> Image:
    """The image at the end of `records`, at an offset, or as of a time.

    Args:
        records: the log in offset order.
        image: where to start from.
        at_offset: the last offset that counts.
        as_of: ms since the epoch; what counts is the longest prefix of the log whose greatest
            append time is not later. A record behind a later one does not count, whatever it says.
        verify: check signatures.

    Raises:
        ValueError: the image to start from is later than what was asked for.
    """
    if (at_offset is not None and image.offset > at_offset) or (
        as_of is not None and image.time > as_of
    ):
        raise ValueError(f"the image at offset {image.offset} is later than what was asked for")
    for record in records:
        if at_offset is not None and record.offset > at_offset:
            break
        if as_of is not None and max(image.time, record.time) > as_of:
            break
        image = apply(image, decode(record, image.schemas, verify=verify))
    return image
