"""Believing the beginning of a log without checking each signature: a checkpoint vouches for it.

The checkpoint's signer had checked every signature, and its `unverified` lines name those that
did not verify. That holds for the log at hand only if the root over the records as they are read
is the signed one, and if the signer is a controller by the word of the mesh's root. So while the
records are believed they are hashed too, what the root has signed is checked always, and nothing
of the result counts before the checkpoint was reached.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from mesh_events.errors import MeshError
from mesh_events.integrity.checkpoint import Range, SignedCheckpoint
from mesh_events.record import SIGNER, Record
from projections.identity import Identity, Role
from projections.integrity.log_verifier import LogVerifier, MismatchError


class IntegrityError(MeshError):
    """The log cannot be believed by its checkpoints: what was folded must be folded anew.

    `code` is stable; `first` and `last` are the offsets between which the reason lies.
    """

    def __init__(self, code: str, first: int, last: int, text: str) -> None:
        super().__init__(text)
        self.code, self.first, self.last = code, first, last


class TrustedCheckpoints:
    """What vouches for the beginning of a log.

    Args:
        path: checkpoints from the first one on, each naming the one before (`Chain.path`). Only
            the last one's signature is looked at: it vouches for those before.
        root_key: the mesh's root as the caller knows it, not as the log says.
    """

    def __init__(self, path: Sequence[SignedCheckpoint], root_key: str) -> None:
        self.path, self.root_key = path, root_key
        self.offset = path[-1].body.offset if path else -1
        """The last offset that is vouched for, -1 for none."""
        self._signer = root_key.encode()
        bad: list[Range] = [one for each in path for one in each.body.unverified]
        self._starts = [first for first, _ in bad]
        self._ends = [last for _, last in bad]

    def until(self, offset: int) -> "TrustedCheckpoints":
        """The same without the checkpoints that cover more than `offset`."""
        count = bisect_right([one.body.offset for one in self.path], offset)
        return TrustedCheckpoints(self.path[:count], self.root_key)

    def covers(self, record: Record) -> bool:
        """Whether the record's signature was found valid, if the log is the one that was signed.

        Never for what the root has signed: whose checkpoint it is rests on that.
        """
        offset = record.offset
        if offset > self.offset or record.headers.get(SIGNER) == self._signer:
            return False
        at = bisect_right(self._starts, offset) - 1
        return at < 0 or offset > self._ends[at]


class TrustedPrefix:
    """One reading of a log from its first record on, whose beginning is believed.

    Args:
        trusted: what vouches for it.
        verifier: hashes the records and expects these checkpoints; a new one by default.
    """

    def __init__(self, trusted: TrustedCheckpoints, verifier: LogVerifier | None = None) -> None:
        self._trusted = trusted
        self._verifier = verifier or LogVerifier()
        if verifier is None:
            self._verifier.expect(one.body for one in trusted.path)
        self._last = trusted.path[-1] if trusted.path else None
        self._end = trusted.offset
        self._believed = self._stopped = False

    @property
    def is_needed(self) -> bool:
        """Whether the last checkpoint was not reached yet."""
        return self._verifier.offset < self._end

    @property
    def is_open(self) -> bool:
        """Whether something is believed that is not proven yet."""
        return self.is_needed and self._believed

    def needs_verification(self, record: Record) -> bool:
        """Whether the signature of the next record must be checked; believed otherwise."""
        doubted = not self._trusted.covers(record)
        self._believed = self._believed or not doubted
        return doubted

    def take(self, record: Record, *, verified: bool, identity: Identity) -> None:
        """A record, and who is who after it; whether its signature verified or was believed.

        Raises:
            IntegrityError: the log is not what a checkpoint says that vouches for it.
            MismatchError: the verifier expects more checkpoints, and the log is not what they say.
        """
        needed = self.is_needed
        try:
            self._verifier.take(record, verified=verified)
        except MismatchError as error:
            if not needed:
                raise
            raise IntegrityError(error.code, error.first, error.last, str(error)) from error
        if needed and not self.is_needed:
            self._prove(identity)

    def stop(self, identity: Identity) -> None:
        """Believe nothing more; the next checkpoint is to prove what was believed so far.

        Raises IntegrityError where it lies at the last record taken and is no controller's.
        """
        reached = self._verifier.offset
        if self._stopped or not self.is_open:
            return
        self._stopped = True
        path = self._trusted.path
        self._last = path[bisect_left([one.body.offset for one in path], reached)]
        self._end = self._last.body.offset
        if not self.is_needed:
            self._prove(identity)

    def close(self) -> None:
        """The log has ended; raises IntegrityError if it ends before the checkpoint."""
        if self.is_open:
            last = self._verifier.offset
            text = f"the log ends at offset {last}, and a checkpoint covers it up to {self._end}"
            raise IntegrityError("tail_cut", last + 1, self._end, text)

    def _prove(self, identity: Identity) -> None:
        """The tree came out right: is it the word of this mesh's controller?"""
        last = self._last
        if last is None or not self._believed:
            return
        if identity.root != self._trusted.root_key:
            text = "the log's first record is not signed by this mesh's root"
            raise IntegrityError("foreign_root", 0, 0, text)
        keys = [one.public for one in identity.keys.values() if one.role is Role.CONTROLLER]
        if last.signer([one for one in keys if identity.has_role(one, Role.CONTROLLER)]) is None:
            text = (
                f"the checkpoint over {last.body.size} records is not signed by a controller's key"
            )
            raise IntegrityError("checkpoint_foreign", 0, self._end, text)
