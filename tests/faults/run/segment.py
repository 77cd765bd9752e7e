"""A log segment of a stopped broker, edited the way somebody with its disk could.

Record batches as Kafka's documentation gives them (magic 2): base offset, length, leader epoch,
magic, a CRC-32C over all that follows it, attributes, last offset delta, times, ... A batch whose
checksum was made to fit is served like any other.
"""

import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

from aiokafka.record.util import calc_crc32c

HEAD = struct.Struct(">qiibIhiqq")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, two times (ms)."""
COVERED = 21
"""The checksum covers everything from the attributes on."""
LENGTH_FROM = 12
"""A batch's length counts what follows offset and length."""
TIMES = 27
"""Where the two times stand."""


@dataclass(frozen=True)
class Batch:
    """One batch: its bytes, and the offsets of its first and last record."""

    raw: bytes
    first: int
    last: int

    def sealed(self) -> "Batch":
        """The same with a checksum that fits."""
        crc = calc_crc32c(self.raw[COVERED:])
        raw = self.raw[: COVERED - 4] + struct.pack(">I", crc) + self.raw[COVERED:]
        return Batch(raw, self.first, self.last)


@dataclass(frozen=True)
class Partition:
    """A partition's folder, whose log still fits one segment."""

    folder: Path

    @property
    def _segment(self) -> Path:
        (found,) = sorted(self.folder.glob("*.log"))
        return found

    def batches(self) -> list[Batch]:
        """Everything that stands in it, in order."""
        data, place, found = self._segment.read_bytes(), 0, []
        while place + HEAD.size <= len(data):
            first, length, _, _, _, _, delta, *_ = HEAD.unpack_from(data, place)
            end = place + LENGTH_FROM + length
            found.append(Batch(data[place:end], first, first + delta))
            place = end
        return found

    def write(self, batches: list[Batch]) -> None:
        """Put other batches there, as if there had never been any but these."""
        self._segment.write_bytes(b"".join(each.raw for each in batches))
        # Kafka makes them again when it finds that it was not stopped cleanly
        for pattern in ("*.index", "*.timeindex", "*.snapshot"):
            for path in self.folder.glob(pattern):
                path.unlink()
        (self.folder.parent / ".kafka_cleanshutdown").unlink(missing_ok=True)

    def saved(self, aside: Path) -> None:
        """Keep a copy."""
        shutil.copytree(self.folder, aside)

    def restored(self, aside: Path) -> None:
        """Bring the copy back."""
        shutil.rmtree(self.folder)
        shutil.copytree(aside, self.folder)


def with_byte_flipped(batch: Batch) -> Batch:
    """One letter of a text in its record is another one; the checksum fits."""
    # behind the batch's head, in the last third: in the value, not among lengths
    place = _letter(batch.raw)
    raw = batch.raw[:place] + bytes([batch.raw[place] ^ 1]) + batch.raw[place + 1 :]
    return Batch(raw, batch.first, batch.last).sealed()


def _letter(raw: bytes) -> int:
    """Where the description of an update stands."""
    return raw.index(b"turn ") + 1


def with_earlier_time(batch: Batch, milliseconds: int) -> Batch:
    """The broker's append time is another one: no signature of a record covers it."""
    times = struct.Struct(">qq")
    first, last = times.unpack_from(batch.raw, TIMES)
    changed = times.pack(first - milliseconds, last - milliseconds)
    raw = batch.raw[:TIMES] + changed + batch.raw[TIMES + times.size :]
    return Batch(raw, batch.first, batch.last).sealed()
