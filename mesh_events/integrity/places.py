"""Where checkpoints are kept, and reading them: `mesh.checkpoints`, and a file outside Kafka.

Who can rewrite the one need not be able to rewrite the other. In the file the notes stand one
after the other, each followed by an empty line.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Message

from mesh_events.errors import ConfigurationError
from mesh_events.integrity.checkpoint import SignedCheckpoint, read_checkpoint
from mesh_events.integrity.note import SIGNATURE
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.topics import CHECKPOINTS


@dataclass(frozen=True, slots=True)
class Found:
    """A note as it was found: `place` says where, `time` is Kafka's append time in ms, if any.

    `checkpoint` is None where the note is none, and `fault` says why.
    """

    place: str
    time: int | None
    checkpoint: SignedCheckpoint | None
    fault: str = ""


def read_file(path: Path) -> list[Found]:
    """The notes of a file, none where there is no file. Half a note at its end is passed over.

    Raises ConfigurationError where the file cannot be read.
    """
    try:
        text = path.read_bytes().decode(errors="surrogateescape")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigurationError(f"the checkpoints {path} cannot be read: {error}") from error
    notes = whole_notes(text)
    return [_found(f"{path}, note {number}", None, raw) for number, raw in enumerate(notes, 1)]


def whole_notes(text: str) -> list[str]:
    """The notes in a file's text, each without the empty line behind it; see `split_notes`."""
    return split_notes(text)[0]


def split_notes(text: str) -> tuple[list[str], str]:
    """(the notes, what was not written to its end).

    A note ends with its signatures. One that was damaged, and be it that an empty line is lost,
    does not take the next ones along.
    """
    *lines, rest = text.split("\n")
    notes: list[str] = []
    note: list[str] = []
    for line in lines:
        if note and note[-1].startswith(SIGNATURE) and not line.startswith(SIGNATURE):
            notes.append("\n".join([*note, ""]))
            note = []
            if not line:
                continue
        note.append(line)
    return notes, "\n".join([*note, rest])


def file_text(note: object) -> str:
    """A note as it stands in the file."""
    return f"{note}\n"


def read_topic(connection: Connection) -> list[Found]:
    """The notes on the topic, from the first that is left. Raises as `PartitionReader`."""
    with PartitionReader(connection, CHECKPOINTS, None) as reader:
        low, _ = reader.bounds()
        reader.seek(low)
        return list(_notes(reader.to_end()))


def checkpoints(found: Iterable[Found]) -> list[SignedCheckpoint]:
    """Those that are checkpoints."""
    return [one.checkpoint for one in found if one.checkpoint is not None]


def _notes(messages: Iterable[Message]) -> Iterator[Found]:
    for message in messages:
        raw = (message.value() or b"").decode(errors="surrogateescape")
        place = f"{CHECKPOINTS}, offset {message.offset()}"
        yield _found(place, message.timestamp()[1], raw)


def _found(place: str, time: int | None, raw: str) -> Found:
    try:
        return Found(place, time, read_checkpoint(raw))
    except ValueError as fault:
        return Found(place, time, None, str(fault))
