"""What of a log is verified, and how its records are read for it. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mesh_events.record import Entry, Record
from projections.fold import apply
from projections.image import Image
from projections.integrity.trusted_prefix import TrustedCheckpoints
from projections.replay import entry_of
from self_service.cli.verification.rejudging import Refold


@dataclass(frozen=True, slots=True)
class Scope:
    """What is doubted.

    first, last: offsets whose signatures and decisions are; of the others only the hashes are
    known_versions: other versions of the software that the caller knows to have governed; what
        they decided against these rules is no finding
    """

    first: int = 0
    last: int | None = None
    known_versions: frozenset[str] = frozenset()

    def holds(self, offset: int) -> bool:
        """Whether an offset is in it."""
        return offset >= self.first and (self.last is None or offset <= self.last)


WHOLE = Scope()
Reread = Callable[[int, int], Iterable[Record]]
"""(first, last) offset -> the records between them, both included."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the records come from.

    end: the offset behind the log's last record, which need not be read up to
    reread: reads a part of the log again, for a decision whose basis stands far before it; None
        keeps the state at every record until the next decision
    """

    end: int | None = None
    reread: Reread | None = None


ONCE = Source()


@dataclass(frozen=True, slots=True)
class Kept:
    """The state of a log at one of its records as it was read before, and the tree up to there."""

    image: Image
    size: int
    root: bytes


@dataclass(frozen=True, slots=True)
class Reading:
    """How records are decoded: which signatures are checked, and which believed."""

    trusted: TrustedCheckpoints
    scope: Scope

    def needs_verification(self, record: Record) -> bool:
        """Whether the signature of a record is checked."""
        return self.scope.holds(record.offset) or not self.trusted.covers(record)

    def entry(self, record: Record, image: Image) -> Entry:
        """A record by the schemas of the image before it."""
        return entry_of(record, image, verify=self.needs_verification(record))

    def refold(self, reread: Reread) -> Refold:
        """Folds a part of the log again that held when it was folded first."""

        def fold(image: Image, last: int) -> Image:
            for record in reread(image.offset + 1, last):
                image = apply(image, self.entry(record, image))
            return image

        return fold
