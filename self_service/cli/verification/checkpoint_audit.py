"""The checkpoints themselves: are both places whole, and do they say the same? Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mesh_events.integrity.checkpoint import SignedCheckpoint
from mesh_events.integrity.places import Found, checkpoints
from projections.integrity.chain import Chain, ChainBreakError, as_signed
from self_service.cli.framework.finding import Finding

WHOLE = "whole"


@dataclass
class Evidence:
    """What both places hold together, and what is wrong with them.

    `times`: digest of a checkpoint's text -> when Kafka took it, ms. `file` tells how the file
    stands: whole, missing, or behind the topic; `in_file` counts its checkpoints of this log.
    """

    chain: Chain
    findings: list[Finding] = field(default_factory=list)
    times: dict[str, int] = field(default_factory=dict)
    file: str = WHOLE
    in_file: int = 0

    def time_of(self, one: SignedCheckpoint) -> int | None:
        """When a checkpoint reached the topic."""
        return self.times.get(one.note.digest)


def judge(origin: str, topic: Sequence[Found], file: Sequence[Found] | None) -> Evidence:
    """Hold both places against each other; `file` is None where there is none to be had."""
    found = Evidence(Chain(origin))
    places = [("mesh.checkpoints", topic), ("the file", file)]
    chains = {
        name: _judge_place(found, origin, notes) for name, notes in places if notes is not None
    }
    for one in (*topic, *(file or ())):
        if one.checkpoint is not None and one.time is not None:
            found.times.setdefault(one.checkpoint.note.digest, one.time)
    for each in as_signed(checkpoints([*topic, *(file or ())])):
        _gather(found.chain, each)
    if file is not None:
        found.in_file = len(chains["the file"])
        found.findings += _edited(checkpoints(topic), checkpoints(file))
        found.findings += _differences(chains["mesh.checkpoints"], chains["the file"])
    # the same text is wrong in both places: once is enough
    found.findings = list(dict.fromkeys(found.findings))
    return found


def is_behind(topic: Sequence[Found], file: Sequence[Found] | None) -> bool:
    """Whether the topic may only not have the file's last checkpoint yet."""
    told = {one.checkpoint.note.digest for one in topic if one.checkpoint}
    return any(one.checkpoint and one.checkpoint.note.digest not in told for one in file or ())


def _judge_place(found: Evidence, origin: str, notes: Sequence[Found]) -> Chain:
    chain = Chain(origin)
    for one in notes:
        if one.checkpoint is None:
            text = f"{one.place} is not a checkpoint: {one.fault}"
            found.findings.append(Finding(0, "checkpoint_edited", text))
    places = {one.checkpoint.note.digest: one.place for one in notes if one.checkpoint}
    for each in as_signed(checkpoints(notes)):
        place, reached = places[each.note.digest], chain.head.body.offset + 1 if chain.head else 0
        try:
            chain.add(each)
        except ChainBreakError as error:
            text = f"{place}: {error}"
            if error.code != "checkpoint_missing":
                found.findings.append(Finding(error.offset, error.code, text))
                continue
            # what is missing covers what stands behind the last one that is there
            found.findings.append(Finding(reached, error.code, text, error.offset))
            chain.begin_anew(each)
    return chain


def _gather(chain: Chain, one: SignedCheckpoint) -> None:
    """Both places together; what is wrong with each was told before."""
    try:
        chain.add(one)
    except ChainBreakError as error:
        if error.code == "checkpoint_missing":
            chain.begin_anew(one)


def _edited(topic: Sequence[SignedCheckpoint], file: Sequence[SignedCheckpoint]) -> list[Finding]:
    """The same text under other signatures: one of the two was changed."""
    told = {one.note.digest: str(one.note) for one in topic}
    return [
        Finding(
            one.body.offset,
            "checkpoint_edited",
            f"the file's signature of the checkpoint over {one.body.size} records differs from the "
            "one on mesh.checkpoints",
        )
        for one in file
        if told.get(one.note.digest, str(one.note)) != str(one.note)
    ]


def behind(topic: Sequence[Found], file: Sequence[Found] | None) -> int:
    """How many checkpoints stand on the topic behind the file's last one."""
    if file is None:
        return 0
    end = max((one.body.size for one in checkpoints(file)), default=0)
    return sum(one.body.size > end for one in checkpoints(topic))


def _differences(topic: Chain, file: Chain) -> list[Finding]:
    found: list[Finding] = []
    for one in file:
        if one not in topic:
            text = f"mesh.checkpoints lacks the checkpoint over {one.body.size} records of the file"
            found.append(Finding(one.body.offset, "checkpoint_missing", text))
    end = file.head.body.size if file.head else 0
    for one in topic:
        # another machine's file is behind until a worker there leads: its end may be missing
        if one not in file and one.body.size <= end:
            text = f"the file lacks the checkpoint over {one.body.size} records of mesh.checkpoints"
            found.append(Finding(one.body.offset, "checkpoint_missing", text))
    return found
