"""Records that a statement reads again after a restart: which of them stand in its two topics.

What becomes of a record may be another thing than before: the row of a table was changed, the
stream's schema or the text is a newer one. So its own place decides whether it was written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_streams.copy import header
from spark_streams.standing import AGAIN, Standing


@dataclass(frozen=True, slots=True)
class Again:
    """Partition -> offsets of the stream; one that is left out reads nothing again.

    floor: at which the start reads.
    known: from which on it is known of each record whether it stands in one of the two topics.
    until: behind the furthest that does.
    stands: a bit for each offset from `floor` to `until`; see `Standing`.
    """

    floor: Mapping[int, int] = field(default_factory=dict)
    known: Mapping[int, int] = field(default_factory=dict)
    until: Mapping[int, int] = field(default_factory=dict)
    stands: Mapping[int, bytes] = field(default_factory=dict)


def again(out: Mapping[int, Standing], dead: Mapping[int, Standing]) -> Again:
    """From what stands in the result and among the dead letters."""
    both = {p: (one, dead[p]) for p, one in out.items()}
    until = {p: max(one.next, other.next) for p, (one, other) in both.items()}
    read = {p: found for p, found in both.items() if until[p] > found[0].floor}
    return Again(
        floor={p: one.floor for p, (one, _) in read.items()},
        known={p: max(one.known, other.known) for p, (one, other) in read.items()},
        until={p: until[p] for p in read},
        stands={p: _either(*found) for p, found in read.items()},
    )


def _either(one: Standing, other: Standing) -> bytes:
    size = max(len(one.places), len(other.places))
    numbers = [int.from_bytes(found.places.ljust(size, b"\0")) for found in (one, other)]
    return (numbers[0] | numbers[1]).to_bytes(size)


def not_before(starts: Mapping[int, int]) -> Any:
    """Whether a record's offset is not before that of its partition."""
    from pyspark.sql.connect import functions as f

    return f.col("offset") >= _of_partition(starts) if starts else f.lit(True)


def is_again(found: Again) -> Any:
    """Whether a record is before the furthest that stands in one of the topics."""
    from pyspark.sql.connect import functions as f

    return ~not_before(found.until) if found.until else f.lit(False)


def is_known(found: Again) -> Any:
    """Whether `stands` tells of a record."""
    return is_again(found) & not_before(found.known)


def stands(found: Again) -> Any:
    """Whether a record that is known stands in one of the topics."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import IntegerType

    if not found.stands:
        return f.lit(False)
    # in an array, of which plans as texts do not show the bytes
    every = [f.lit(found.stands.get(one, b"")) for one in range(max(found.stands) + 1)]
    here = f.get(f.array(*every), f.col("partition"))
    place = f.col("offset") - _of_partition(found.floor)
    eight = f.substring(here, (f.shiftright(place, 3) + 1).cast(IntegerType()), 1)
    number = f.conv(f.hex(eight), 16, 10).cast(IntegerType())
    bit = f.getbit(number, (place % 8).cast(IntegerType()))
    return f.coalesce(bit == f.lit(1), f.lit(False))


def mark(found: Again) -> Any:
    """The header of a dead letter that may stand behind later ones; see `AGAIN`."""
    from pyspark.sql.connect import functions as f
    from pyspark.sql.types import BinaryType, StringType

    until = _of_partition(found.until) if found.until else f.lit(0)
    return header(AGAIN, until.cast(StringType()).cast(BinaryType()))


def _of_partition(offsets: Mapping[int, int]) -> Any:
    """The offset of the record's partition, 0 for one without."""
    from pyspark.sql.connect import functions as f

    # one array, however many partitions: conditions within each other are soon too deep for Spark
    known = f.array(*[f.lit(offsets.get(one, 0)) for one in range(max(offsets) + 1)])
    return f.coalesce(f.get(known, f.col("partition")), f.lit(0))
