"""Steps: a link, statement or connector as what it reads and the topic or table that it fills."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from immutables import Map

from projections.connectors import config
from projections.connectors.state import Connector
from projections.links import Link
from projections.statements import Statement
from projections.table import Table, with_entry

Place = tuple[str, str]
"""(cluster, topic), or (OpenLineage's namespace, name) of a table."""
OUTSIDE = "outside"
"""Where a sink writes of which no more is known."""
REPLACED = "REPLACED"
"""State of a step by an earlier text or config, which may have left records in what it filled."""
DELETED = "DELETED"
"""State of a step whose topic was deleted since; what was made of that may still be there."""
EARLIER = frozenset({REPLACED, DELETED})


@dataclass(frozen=True, slots=True)
class Step:
    """A job that reads some topics or tables and fills one.

    kind: `link`, `statement` or `connector`; state: as the log has it, REPLACED or DELETED.
    reads: of a statement the stream first, then the tables; none if unknown.
    application: by whose grants a statement or a sink reads; copy: of a link, its state.
    dead_letters: where records of `streams` go as they were, if it cannot deal with them.
    streams: those of what it reads; of several earlier texts together all that were one.
    """

    kind: str
    name: str
    state: str
    reads: tuple[Place, ...]
    fills: Place
    application: str | None = None
    copy: str | None = None
    dead_letters: tuple[Place, ...] = ()
    streams: tuple[Place, ...] = ()

    @property
    def writes(self) -> tuple[Place, ...]:
        """What it fills, then where its dead letters go."""
        return (self.fills, *self.dead_letters)

    def writes_from(self, place: Place) -> tuple[Place, ...]:
        """Where records of something that it reads end up, whole or in part."""
        return self.writes if place in self.streams else (self.fills,)

    def reads_for(self, place: Place) -> tuple[Place, ...]:
        """What something that it writes is made of."""
        return self.reads if place == self.fills else self.streams

    def covers(self, other: "Step") -> bool:
        """Whether this one, of the same job, reads and fills all that the other does."""
        return (
            (self.fills, self.application) == (other.fills, other.application)
            and set(other.reads) <= set(self.reads)
            and set(other.streams) <= set(self.streams)
            and set(other.dead_letters) <= set(self.dead_letters)
        )


Key = tuple[str, str, str, str, str]
"""(kind, name, application, cluster, topic) of a step."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The steps of earlier texts and configs.

    Args:
        steps: those with the same key in one.
        at: place -> the keys of those that may have left records there -> 1.
    """

    steps: Table[Key, Step] = field(default_factory=Map)
    at: Table[Place, Map[Key, int]] = field(default_factory=Map)

    def put(self, step: Step) -> "Replaced":
        """With a step in the place of the one with its key."""
        key = _key(step)
        was, now, at = _left_at(self.steps.get(key)), _left_at(step), self.at
        for places, number in ((was - now, None), (now - was, 1)):
            for place in places:
                at = with_entry(at, place, key, number)
        return Replaced(self.steps.set(key, step), at)

    def left_at(self, place: Place) -> list[Step]:
        """Those that may have left records in a place."""
        found: Map[Key, int] = self.at.get(place) or Map()
        return [self.steps[key] for key in found]


def _left_at(step: Step | None) -> set[Place]:
    if step is None:
        return set()
    return {*step.dead_letters} if step.state == DELETED else {step.fills, *step.dead_letters}


EMPTY = Replaced()


def of_link(link: Link) -> Step:
    """The copying of a product."""
    source, copy = (link.source_cluster, link.source_topic), (link.cluster, link.topic)
    return Step("link", link.id, link.state, (source,), copy, copy=link.copy)


def of_statement(one: Statement) -> Step:
    """The filling of a destination."""
    reads = tuple((one.cluster, topic) for topic in one.reads)
    fills = (one.cluster, one.destination)
    dead = ((one.cluster, one.dead_letters),)
    about = ("statement", one.id, one.state)
    return Step(*about, reads, fills, one.application, dead_letters=dead, streams=reads[:1])


def of_connector(one: Connector) -> Iterator[Step]:
    """A step for each topic that it reads or fills."""
    about = ("connector", one.id, one.state)
    if one.is_sink:
        tables = {found.topic: found for found in config.filled(one.config)}
        named = one.config.get(config.DEAD_LETTERS)
        dead = ((one.cluster, named),) if named else ()
        for topic in one.reads:
            table = tables.get(topic)
            target = (table.namespace, table.name) if table else (OUTSIDE, one.id)
            source = (one.cluster, topic)
            filled = (*about, (source,), target, one.application)
            yield Step(*filled, dead_letters=dead, streams=(source,))
        return
    captured = {found.topic: found for found in config.captured(one.config)}
    for topic in one.writes:
        found = captured.get(topic)
        reads = ((found.namespace, found.name),) if found else ()
        yield Step(*about, reads, (one.cluster, topic), one.application)


def replaced(known: Replaced, before: Iterable[Step], after: Iterable[Step]) -> Replaced:
    """A job has another text or config: what the new one does not read and fill is kept."""
    for step in _not_covered(before, after):
        known = known.put(_merged(known.steps.get(_key(step), step), step))
    return known


def leaves(known: Replaced, before: Statement | Connector, after: Statement | Connector) -> int:
    """How many steps the text or config before another one leaves that are not known yet."""
    left = _not_covered(_of_job(before), _of_job(after))
    return sum(not _is_known(known, step) for step in left)


def _not_covered(before: Iterable[Step], after: Iterable[Step]) -> Iterator[Step]:
    """What a job has read and filled, and does not any more."""
    now: dict[tuple[Place, str | None, Place], list[Step]] = {}
    for one in after:
        for read in one.reads:
            now.setdefault((one.fills, one.application, read), []).append(one)
    for step in before:
        if step.reads:
            found = now.get((step.fills, step.application, step.reads[0]), ())
            if not any(one.covers(step) for one in found):
                yield step


def _is_known(known: Replaced, step: Step) -> bool:
    found = known.steps.get(_key(step))
    return (
        found is not None
        and set(step.reads) <= set(found.reads)
        and set(step.dead_letters) <= set(found.dead_letters)
        and set(step.streams) <= set(found.streams)
    )


def _of_job(one: Statement | Connector) -> Iterable[Step]:
    return (of_statement(one),) if isinstance(one, Statement) else of_connector(one)


def emptied(known: Replaced, place: Place) -> Replaced:
    """A topic was deleted and is made anew: what had filled it left records elsewhere at most."""
    for step in known.left_at(place):
        if step.fills == place:
            known = known.put(replace(step, state=DELETED))
        else:
            left = tuple(one for one in step.dead_letters if one != place)
            known = known.put(replace(step, dead_letters=left))
    return known


def _merged(before: Step, step: Step) -> Step:
    return replace(
        step,
        state=REPLACED,
        reads=_together(before.reads, step.reads),
        dead_letters=_together(before.dead_letters, step.dead_letters),
        streams=_together(before.streams, step.streams),
    )


def _together(some: Iterable[Place], more: Iterable[Place]) -> tuple[Place, ...]:
    return tuple(dict.fromkeys((*some, *more)))


def _key(step: Step) -> Key:
    return (step.kind, step.name, step.application or "", *step.fills)
