"""The tree over the records as they are read, against what was signed: the narrowest difference."""

from bisect import bisect_left, bisect_right

from mesh_events.codec import has_valid_signature, holds_signature
from mesh_events.decisions import GovernorStarted
from mesh_events.integrity.checkpoint import Checkpoint, SignedCheckpoint
from mesh_events.record import Entry, Record
from projections.identity import Identity, Role
from projections.integrity.chain import Chain
from projections.integrity.log_verifier import LogVerifier, MismatchError
from self_service.cli.framework.finding import Finding


class TreeCheck:
    """Takes every record; tells at the end what does not fit."""

    def __init__(self, chain: Chain | None = None) -> None:
        self.chain = chain
        self._signed: dict[str, SignedCheckpoint] = {}
        self._verifier = LogVerifier()
        self._findings: list[Finding] = []
        self._broken = False
        # records since the last checkpoint that came out right, to look closer at a wrong one
        self._recent: list[Record] = []
        # offsets of the governors' starts among them
        self._started: list[int] = []
        # offsets whose signature does not verify; those that were not looked at
        self._unverified: list[int] = []
        self._unchecked: list[int] = []
        if chain is not None:
            self._signed = {one.note.digest: one for one in chain}
            self._verifier.expect(one.body for one in chain.by_size())

    @property
    def size(self) -> int:
        """How many records the tree holds."""
        return self._verifier.size

    @property
    def root(self) -> bytes:
        """The root over them."""
        return self._verifier.root

    @property
    def confirmed(self) -> Checkpoint | None:
        """The last checkpoint that came out right."""
        return self._verifier.confirmed

    @property
    def confirmed_offset(self) -> int:
        """The last offset that it covers, -1 without one."""
        return self._verifier.confirmed.offset if self._verifier.confirmed else -1

    def covers(self, offset: int) -> bool:
        """Whether nothing more is to be learnt about an offset from the records behind it."""
        return self._broken or self._verifier.expected is None or self.confirmed_offset >= offset

    def take(self, record: Record, entry: Entry, identity: Identity, *, checked: bool) -> None:
        """The next record as it was understood; `checked` if its signature was looked at."""
        if checked and not holds_signature(record, entry, identity.root):
            self._unverified.append(record.offset)
        if not checked:
            self._unchecked.append(record.offset)
        before = self._verifier.confirmed
        if isinstance(entry.event, GovernorStarted):
            self._started.append(record.offset)
        while True:
            try:
                if self._verifier.offset < record.offset:
                    self._verifier.take(record)
                else:
                    # it was taken, and only the comparison is left
                    self._verifier.expect(())
                break
            except MismatchError as error:
                self._mismatch(error, [*self._recent, record], identity)
        if self._verifier.confirmed is not before or self._verifier.expected is None:
            self._recent, self._started = [], []
        else:
            self._recent.append(record)

    def close(self, identity: Identity, end: int | None) -> list[Finding]:
        """What was found, under these roles; the log ends before `end`, None if nobody knows."""
        beyond = [] if end is None or self._broken else self._beyond(end, identity)
        if beyond:
            ahead = beyond[0]
            text = (
                f"the log ends before offset {end}, and a checkpoint over {ahead.size} records "
                f"covers it up to {ahead.offset}: its end was truncated"
            )
            self._findings.append(Finding(end or 0, "tail_cut", text, ahead.offset))
        for one in self.chain or ():
            # whose keys count behind the last record that was read, nobody knows here
            if end is not None and self._verifier.offset < one.body.offset < end:
                continue
            self._findings += _doubt_signer(one, identity)
            self._findings += self._doubt_unverified(one)
        return self._findings

    def _beyond(self, end: int, identity: Identity) -> list[Checkpoint]:
        """A controller's checkpoints over what the log does not hold."""
        signed = self.chain.by_size() if self.chain else []
        return [
            one.body
            for one in signed
            if one.body.offset >= end and self._may_sign(one.body, identity)
        ]

    def _mismatch(self, error: MismatchError, recent: list[Record], identity: Identity) -> None:
        expected = self._verifier.expected
        if expected is None or not self._may_sign(expected, identity):
            # told as a checkpoint of nobody; the next one may be a controller's
            self._verifier.pass_over()
            return
        self._broken = True
        while self._verifier.expected is not None:
            self._verifier.pass_over()
        self._findings.append(self._narrowed(error, expected, recent, identity.root))

    def _narrowed(
        self, error: MismatchError, expected: Checkpoint, recent: list[Record], root: str | None
    ) -> Finding:
        """The one record that is wrong, if its signature shows it; else the range."""
        known = [(first, last) for first, last in expected.unverified]
        for record in recent if error.code == "record_edited" else ():
            offset = record.offset
            if any(first <= offset <= last for first, last in known) or offset > error.last:
                continue
            if not has_valid_signature(record, root):
                text = (
                    f"the record at offset {offset} was edited: its signature verified when the "
                    f"checkpoint over {expected.size} records was signed, and does not now"
                )
                return Finding(offset, error.code, text)
        last = error.last if error.last > error.first else None
        return Finding(error.first, error.code, f"{error}{self._perhaps_cut(error)}", last)

    def _perhaps_cut(self, error: MismatchError) -> str:
        """What else may have been: a worker appends its start to a log whose end is gone."""
        if error.code != "record_edited" or not self._started:
            return ""
        starts = ", ".join(map(str, self._started[:3]))
        return (
            f"; or the log's end was truncated (tail_cut) before offset {starts}, where a governor "
            "started on the rest"
        )

    def _may_sign(self, checkpoint: Checkpoint, identity: Identity) -> bool:
        """Whether a controller's key signed it; before there are controllers nobody can tell."""
        controllers = _controllers(identity)
        signed = self._signed[checkpoint.digest]
        return not controllers or signed.signer(controllers) is not None

    def _doubt_unverified(self, one: SignedCheckpoint) -> list[Finding]:
        """Does a checkpoint tell of every signature that does not verify?"""
        body = one.body
        before = self._signed.get(body.previous)
        start = before.body.offset + 1 if before else 0
        if (
            (body.previous and before is None)
            or body.offset > self.confirmed_offset
            or _between(self._unchecked, start, body.offset)
        ):
            return []
        found = _between(self._unverified, start, body.offset)
        told = [at for first, last in body.unverified for at in range(first, last + 1)]
        if found == told:
            return []
        wrong = min(set(found) ^ set(told))
        text = (
            f"the checkpoint over {body.size} records reports of the signature at offset {wrong} "
            f"that it {'verifies' if wrong in found else 'does not verify'}"
        )
        return [Finding(wrong, "checkpoint_false", text)]


def _doubt_signer(one: SignedCheckpoint, identity: Identity) -> list[Finding]:
    body, controllers = one.body, _controllers(identity)
    public = one.signer(controllers)
    if public is None and any(one.note.names(body.origin, key) for key in controllers):
        text = f"the checkpoint over {body.size} records is not what the controller signed"
        return [Finding(body.offset, "checkpoint_edited", text)]
    if public is None:
        text = f"the checkpoint over {body.size} records is not signed by a controller of this mesh"
        return [Finding(body.offset, "checkpoint_foreign", text)]
    revoked = identity.keys[public].revoked
    if revoked is not None and body.offset > revoked:
        text = (
            f"the checkpoint over {body.size} records is signed by a controller's key that was "
            f"revoked at offset {revoked}"
        )
        return [Finding(body.offset, "checkpoint_revoked", text)]
    return []


def _controllers(identity: Identity) -> list[str]:
    return [one.public for one in identity.keys.values() if one.role is Role.CONTROLLER]


def _between(offsets: list[int], first: int, last: int) -> list[int]:
    return offsets[bisect_left(offsets, first) : bisect_right(offsets, last)]
