"""Replaying the log: from records to the image at any offset or time."""

from collections.abc import Callable, Iterable, Iterator

from mesh_events.codec import decode
from mesh_events.errors import StateFaultError
from mesh_events.record import Entry, Record
from projections.fold import apply
from projections.image import EMPTY, Image
from projections.integrity.trusted_prefix import IntegrityError, TrustedCheckpoints, TrustedPrefix


def walk(
    records: Iterable[Record],
    image: Image = EMPTY,
    *,
    verify: bool = True,
    trusted: TrustedCheckpoints | None = None,
) -> Iterator[tuple[Entry, Image]]:
    """Each entry with the image after it; schemas are learnt from the log on the way.

    Args:
        records: the log in offset order.
        image: where to start from.
        verify: check signatures.
        trusted: checkpoints that make checking unnecessary for what they cover; then `records`
            begin with the log's first.

    Raises:
        IntegrityError: the log is not what the checkpoints say, and what was yielded must be
            forgotten. At the latest when all records were read.
    """
    prefix = TrustedPrefix(trusted) if trusted is not None else None
    for record in records:
        entry, image = step(record, image, prefix, verify=verify)
        yield entry, image
    if prefix is not None:
        prefix.close()


def fold(
    records: Iterable[Record], image: Image = EMPTY, *, verify: bool = True
) -> Iterator[Image]:
    """The image after each record."""
    for _, after in walk(records, image, verify=verify):
        yield after


def replay(
    records: Iterable[Record],
    image: Image = EMPTY,
    *,
    at_offset: int | None = None,
    as_of: int | None = None,
    verify: bool | Callable[[Record], bool] = True,
    trusted: TrustedCheckpoints | None = None,
) -> Image:
    """The image at the end of `records`, at an offset, or as of a time.

    Args:
        records: the log in offset order.
        image: where to start from.
        at_offset: the last offset that counts.
        as_of: ms since 1970 by the mesh's clock; what counts is the longest prefix of the log
            that ends with a record which is not later. A broker whose clock was wrong moves no
            decision: a record between two of them is not later than the second one.
        verify: check signatures, all or those of some records.
        trusted: checkpoints that make checking unnecessary for what they cover; then `records`
            begin with the log's first.

    Raises:
        ValueError: the image to start from is later than what was asked for.
        IntegrityError: the log is not what the checkpoints say: replay it without them.
    """
    if (at_offset is not None and image.offset > at_offset) or (
        as_of is not None and image.time > as_of
    ):
        raise ValueError(f"the image at offset {image.offset} is later than what was asked for")
    prefix, over, found = TrustedPrefix(trusted) if trusted is not None else None, False, image
    for record in records:
        over = over or (at_offset is not None and record.offset > at_offset)
        if not over:
            checked = verify(record) if callable(verify) else verify
            _, image = step(record, image, prefix, verify=checked)
            if as_of is None or image.time <= as_of:
                found = image
            # later decisions are later: their clock never goes back
            over = as_of is not None and image.clock > as_of
            if not over or prefix is not None:
                continue
        if prefix is None:
            break
        # what was believed so far is proven by the next checkpoint
        prefix.stop(image.identity)
        if not prefix.is_open:
            break
        prefix.take(record, verified=True, identity=image.identity)
    if prefix is not None:
        prefix.close()
    return found


def entry_of(record: Record, image: Image, *, verify: bool = True) -> Entry:
    """The next record as it is understood after `image`; `verify` as in `codec.decode`."""
    identity = image.identity
    return decode(record, image.schemas, identity.root, verify=verify, knows=identity.knows)


def step(
    record: Record, image: Image, prefix: TrustedPrefix | None = None, *, verify: bool = True
) -> tuple[Entry, Image]:
    """The next record as it was understood, and the image after it.

    `prefix` is the reading whose next record it is, if its beginning is believed. Raises as `walk`.
    """
    doubted = verify and (prefix is None or prefix.needs_verification(record))
    entry = entry_of(record, image, verify=doubted)
    try:
        image = apply(image, entry)
    except StateFaultError as error:
        if prefix is None or not prefix.is_open:
            raise
        # what was believed may be to blame: who checks every signature learns it
        offset = record.offset
        raise IntegrityError("state_fault", offset, offset, str(error)) from error
    # behind its last checkpoint a prefix has nothing to compare with
    if prefix is not None and prefix.is_needed:
        prefix.take(record, verified=True, identity=image.identity)
    return entry, image
