"""The checkpoints of a mesh in both places, topic and file, and making the two equal.

A checkpoint goes to the file first. What a crash left out of the topic, or what another worker's
file has not seen, is written again when the next leadership begins.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import structlog
from confluent_kafka import KafkaError, Message, Producer

from mesh_events.errors import ConfigurationError, InfrastructureError
from mesh_events.integrity.checkpoint import SignedCheckpoint
from mesh_events.integrity.places import (
    Found,
    checkpoints,
    file_text,
    read_file,
    read_topic,
    split_notes,
)
from mesh_events.kafka.connection import Connection, translated, translating
from mesh_events.topics import CHECKPOINTS
from processors.crash_points import crash_point
from projections.integrity.chain import Chain, chained

log = structlog.get_logger(__name__)
_DELIVERY_S = 15
_MOST_BAD = 9
"""Damaged files that are kept."""


class CheckpointStore:
    """Both places of one mesh's checkpoints; used by one thread at a time, but for `look`.

    Args:
        connection: login that may read and write the topic.
        path: the file.
        origin: the name of the log.
    """

    def __init__(self, connection: Connection, path: Path, origin: str) -> None:
        self.path, self.origin = path, origin
        self._connection = connection
        self._topic: list[Found] = []
        self._producer: Producer | None = None

    def read(self) -> Chain:
        """What both places hold.

        Raises:
            ChainBreakError: they contradict each other, or one of them itself.
            MeshError: a place cannot be read.
        """
        self._topic = read_topic(self._connection)
        return self._chained(self._topic)

    def look(self) -> Chain:
        """The same for any thread; raises as `read`."""
        return self._chained(read_topic(self._connection))

    def _chained(self, topic: list[Found]) -> Chain:
        found = [*topic, *read_file(self.path)]
        for one in found:
            if one.checkpoint is None:
                log.warning("checkpoint_unreadable", place=one.place, reason=one.fault)
        return chained(self.origin, checkpoints(found))

    def equalize(self, chain: Chain) -> None:
        """Write to each place what only the other one holds, as of the last `read`.

        A file with something in it that no controller wrote is kept as evidence, and written anew.
        """
        self._put_aside(chain)
        with self._file() as file:
            _cut_torn(file)
            known = {one.note.digest for one in checkpoints(read_file(self.path))}
            missing = [one for one in chain if one.note.digest not in known]
            self._write(file, missing)
        told = {one.note.digest for one in checkpoints(self._topic)}
        untold = [one for one in chain if one.note.digest not in told]
        for one in untold:
            self._produce(one)
        if missing or untold:
            log.warning("checkpoints_restored", to_file=len(missing), to_topic=len(untold))

    def _put_aside(self, chain: Chain) -> None:
        signed = {one.note.digest: str(one.note) for one in chain}
        for found in read_file(self.path):
            note = found.checkpoint.note if found.checkpoint else None
            if note is not None and signed.get(note.digest, str(note)) == str(note):
                continue
            with suppress(OSError):
                bad = self.path.replace(self._spare())
                log.warning("checkpoints_put_aside", file=str(bad), place=found.place)
            return

    def _spare(self) -> Path:
        """Where a damaged file is kept: beside those before it, of which the last gives way."""
        numbers = ("", *(f".{number}" for number in range(2, _MOST_BAD + 1)))
        places = [Path(f"{self.path}{number}.bad") for number in numbers]
        return next((one for one in places if not one.exists()), places[-1])

    def append(self, checkpoint: SignedCheckpoint) -> None:
        """Write a checkpoint to the file, then to the topic. Raises MeshError."""
        with self._file() as file:
            self._write(file, [checkpoint])
        crash_point("checkpoint-after-file")
        self._produce(checkpoint)
        crash_point("checkpoint-after-topic")

    @contextmanager
    def _file(self) -> Iterator[BinaryIO]:
        """The file, opened to be written at its end, for this process alone."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            with self.path.open("a+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
        except OSError as error:
            raise ConfigurationError(
                f"the checkpoints {self.path} cannot be written: {error}"
            ) from error

    def _write(self, file: BinaryIO, notes: Sequence[SignedCheckpoint]) -> None:
        if not notes:
            return
        file.write("".join(file_text(one.note) for one in notes).encode())
        file.flush()
        os.fchmod(file.fileno(), 0o644)
        os.fsync(file.fileno())
        # a new file is there after a crash only if its folder is
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _produce(self, checkpoint: SignedCheckpoint) -> None:
        doing = f"writing {CHECKPOINTS} as {self._connection.user}"
        if self._producer is None:
            self._producer = Producer(
                self._connection.config(
                    enable_idempotence=True,
                    acks="all",
                    linger_ms=0,
                    delivery_timeout_ms=_DELIVERY_S * 1000,
                )
            )
        found: list[KafkaError | None] = []

        def on_delivery(error: KafkaError | None, _: Message) -> None:
            found.append(error)

        with translating(doing):
            self._producer.produce(
                CHECKPOINTS,
                key=self.origin,
                value=str(checkpoint.note).encode(),
                partition=0,
                on_delivery=on_delivery,
            )
            self._producer.flush(_DELIVERY_S + 1)
        if not found:
            raise InfrastructureError(f"{doing}: Kafka does not answer", retriable=True)
        if found[0] is not None:
            raise translated(found[0], doing)


def _cut_torn(file: BinaryIO) -> None:
    """Take away half a note that a crash left at the end."""
    file.seek(0)
    text = file.read().decode(errors="surrogateescape")
    torn = len(split_notes(text)[1].encode(errors="surrogateescape"))
    if torn:
        log.warning("checkpoint_torn", bytes=torn)
        file.truncate(file.tell() - torn)
