"""A statement's new text beside the present one, on the same records, before it takes its place.

The trial is a statement of its own, `<statement>-trial`, which fills `<destination>.trial` from the
stream's beginning on; what both made of each record is compared by the record's place in the
stream. What stands in the destination of a statement that was changed before, or came back to it,
may come from earlier texts: then the present one is tried as well, as `<statement>-present`.
Afterwards both are deleted, and their topics are deleted. Where another's statement, topic or
schema has such a name, nothing is tried, and nothing is touched.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import Message

from mesh_events.errors import RefusedError
from mesh_events.intents import domain_of
from mesh_events.kafka.connection import Connection, header_list
from mesh_events.statements import (
    Begin,
    StatementAdded,
    StatementDeleted,
    StatementIntent,
    StatementStopped,
)
from processors.clusters.kafka import ClusterAdmin
from projections.statements import DEAD_LETTERS, Statement
from self_service.cli.framework.options import SubmitOptions, Until
from self_service.cli.framework.output import note
from self_service.cli.link.lag import reached
from self_service.cli.mesh import brokers
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.submitting import submit
from self_service.cli.streaming.trial_comparison import Comparison, Place, Result, compare
from self_service.cli.streaming.trial_topics import TrialTopics, description_of
from self_service.cli.streaming.wording import Worded
from self_service.cli.topic.consuming import Wanted, read
from self_service.cli.topic.record_view import Decoder
from spark_streams.log import KafkaLog
from spark_streams.provenance import HEADER, NotProvenanceError, Origin, Provenance
from spark_streams.sql.text.parse import parse

SUFFIX, PRESENT = "trial", "present"
_REASON = "mesh.reason"
Bounds = Mapping[int, tuple[int, int]]
"""Partition -> (first, end) of the stream's records."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A new text for a statement, to be tried on up to `most` records of each partition."""

    mesh: Mesh
    options: SubmitOptions
    statement: Statement
    meant: Worded
    most: int

    @property
    def name(self) -> str:
        """The trial's id."""
        return self._name(SUFFIX)

    def _name(self, suffix: str) -> str:
        return f"{self.statement.id}-{suffix}"

    def _topic(self, suffix: str) -> str:
        return f"{self.statement.destination}.{suffix}"

    def run(self) -> Comparison:
        """Let both run side by side; what differs.

        Raises RefusedError where the new text is refused or does not run, or where a name that the
        trial needs is another's: the present one goes on.
        """
        image = self.mesh.image()
        login = self.mesh.login(image, self.statement.cluster, self.statement.domain)
        admin = brokers.admin(login)
        every = [self._topics(admin, suffix) for suffix in (SUFFIX, PRESENT)]
        for one in every:
            one.require_ours(image)
        reader = self.mesh.login(image, self.statement.cluster, self._reader())
        with closing(KafkaLog(login)) as log, closing(KafkaLog(reader, committed=True)) as stream:
            self._clear(every, image.offset)
            try:
                bounds = self._bounds(login, stream)
                note(f"{self.name}: the new text runs next to the current one")
                self._submit(SUFFIX, StatementAdded, **self._fields(SUFFIX, self.meant))
                is_tried = self._tries_present()
                common = self._await(log, bounds, is_tried=is_tried)
                for suffix in (SUFFIX, PRESENT) if is_tried else (SUFFIX,):
                    self._submit(suffix, StatementStopped)
                told = self._compared(login, common, is_tried=is_tried)
                told.there, told.dealt_with = _count(bounds), _count(common)
                return told
            finally:
                self._clear(every, image.offset)

    def _reader(self) -> str:
        """Who may read the stream: of another domain's product the application with the grant."""
        found = self.statement
        application = self.meant.application or found.application
        if application is None or domain_of(found.stream) == found.domain:
            return found.domain
        return application

    def _tries_present(self) -> bool:
        """Let the present text run anew, where the destination may have what another one made."""
        found = self.statement
        if found.generation == found.created_generation and not found.out_begin:
            return False
        present = Worded(
            parse(found.sql),
            found.stream,
            list(found.tables),
            dict(found.names),
            found.destination,
            found.application,
        )
        try:
            self._submit(PRESENT, StatementAdded, **self._fields(PRESENT, present))
        except RefusedError as error:
            note(
                f"the current text cannot be run again ({error.code}): comparing with the records "
                f"of {found.destination}, which earlier texts may have written"
            )
            return False
        return True

    def _fields(self, suffix: str, text: Worded) -> dict[str, Any]:
        names, filled = dict(text.names), text.parsed.destination
        if filled is not None:
            names[filled.name] = self._topic(suffix)
        return {
            **text.fields(),
            "names": names,
            "destination": self._topic(suffix),
            "begin": Begin.EARLIEST,
            "description": description_of(self.statement.id),
        }

    def _bounds(self, login: Connection, stream: KafkaLog) -> Bounds:
        """Partition -> (first, end) of the stream's records that are compared."""
        partitions = brokers.offsets(login, self.statement.destination)
        found = stream.bounds(self.statement.stream, partitions)
        return {
            partition: (low, min(high, low + self.most)) for partition, (low, high) in found.items()
        }

    def _await(self, log: KafkaLog, bounds: Bounds, *, is_tried: bool) -> Bounds:
        """Wait until both have dealt with the records; what both are known to have dealt with.

        How far a query has come is told by what it writes, and where nothing comes out by the log:
        that it stands still tells nothing, since a server may be slow.
        """
        began = time.monotonic()
        present = self._name(PRESENT) if is_tried else self.statement.id
        while True:
            now = self._both(log, bounds, present)
            # one that does not run comes to nothing more
            runs = is_tried or self.statement.is_active
            wanted = bounds if runs else _within(bounds, now[:1])
            if all(_covers(one, wanted) for one in now):
                return wanted
            if time.monotonic() - began > self.options.timeout:
                note(
                    f"{self.name}: not all was processed in {self.options.timeout:g} s (--timeout)"
                )
                return _within(bounds, now)
            time.sleep(0.3)

    def _both(self, log: KafkaLog, bounds: Bounds, present: str) -> list[dict[int, int]]:
        """How far the present one and the trial have come."""
        statements = self.mesh.image().statements
        both = (statements[present], statements[self.name])
        return [reached(log, one, len(bounds)) for one in both]

    def _compared(self, login: Connection, bounds: Bounds, *, is_tried: bool) -> Comparison:
        """Only what both have dealt with."""
        present = self._topic(PRESENT) if is_tried else self.statement.destination
        before = self._results(login, present, bounds)
        after = self._results(login, self._topic(SUFFIX), bounds)
        if self.statement.begin is Begin.LATEST and not is_tried:
            # what came before the present one began is no difference
            first: dict[int, int] = {}
            for partition, offset in before:
                first[partition] = min(offset, first.get(partition, offset))
            after = {at: one for at, one in after.items() if at[1] >= first.get(at[0], at[1] + 1)}
        present = self._name(PRESENT) if is_tried else self.statement.id
        return compare(before, after, (self._columns(present), self._columns(self.name)))

    def _columns(self, statement: str) -> list[str]:
        """The columns of a result by the schema that its records have."""
        schema_id = self.mesh.image().statements[statement].schema_id
        if schema_id is None:
            return []
        schema = json.loads(self.mesh.registry.schema_text(schema_id))
        return [one["name"] for one in schema["fields"]]

    def _results(self, login: Connection, topic: str, within: Bounds) -> dict[Place, Result]:
        decoder, found = Decoder(self.mesh), dict[Place, Result]()
        trial = self.mesh.image().statements[self.name]
        # the present one may hold records of a stream that was, before it was made again
        origin = Origin(trial.cluster, str(trial.stream_topic_id))
        for name in (topic, topic + DEAD_LETTERS):
            for place, message in _placed(login, name, within, origin):
                if name == topic:
                    value = decoder.value(message.value()).value
                    found[place] = Result(value if isinstance(value, dict) else {"value": value})
                else:
                    reason = dict(header_list(message)).get(_REASON) or b""
                    found[place] = Result(None, reason.decode("utf-8", "replace"))
        return found

    def _submit(self, suffix: str, kind: type[StatementIntent], **fields: Any) -> None:
        options = replace(self.options, until=Until.ACTIVE, wait=True)
        who = self.mesh.acting_as(options.domain)
        submit(
            self.mesh,
            who,
            options,
            lambda meta: kind(meta=meta, statement=self._name(suffix), **fields),
            default=Until.ACTIVE,
        )

    def _topics(self, admin: ClusterAdmin, suffix: str) -> TrialTopics:
        name, topic = self._name(suffix), self._topic(suffix)
        return TrialTopics(self.mesh, admin, name, self.statement.id, topic)

    def _clear(self, every: Iterable[TrialTopics], since: int) -> None:
        """End both, also those that were broken off, and remove all that they made."""
        for suffix, one in zip((SUFFIX, PRESENT), every, strict=True):
            found = one.statement(self.mesh.image())
            if found is not None and found.stands:
                self._submit(suffix, StatementDeleted, reason="the comparison run ended")
            one.remove(self.mesh.image(), since)


def _covers(reached: Mapping[int, int], bounds: Bounds) -> bool:
    return all(reached.get(one, 0) >= end for one, (low, end) in bounds.items() if end > low)


def _count(bounds: Bounds) -> int:
    return sum(max(0, end - low) for low, end in bounds.values())


def _within(bounds: Bounds, reached: Sequence[Mapping[int, int]]) -> Bounds:
    return {
        partition: (low, min(end, *(one.get(partition, 0) for one in reached)))
        for partition, (low, end) in bounds.items()
    }


def _placed(
    login: Connection, topic: str, within: Bounds, origin: Origin
) -> Iterator[tuple[Place, Message]]:
    """The records of a topic that came from these of the stream, by their place there."""
    left = {partition for partition, (low, end) in within.items() if end > low}
    for message in read(login, Wanted(topic)):
        try:
            place = Provenance.parse(dict(header_list(message)).get(HEADER))
        except NotProvenanceError:
            continue
        if place.origin != origin:
            continue
        low, end = within.get(place.partition, (0, 0))
        if low <= place.offset < end:
            yield (place.partition, place.offset), message
        elif place.offset >= end:
            left.discard(place.partition)
            if not left:
                return
