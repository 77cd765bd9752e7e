"""Where data comes from and where it goes, read off the image.

By topics, links, statements, connectors and readers. Pure, and so it can be asked of any moment.
A table of a database is a place as well: (OpenLineage's namespace, name).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from projections.access import ENTITLED, Access
from projections.image import Image
from projections.lineage.steps import (
    DELETED,
    OUTSIDE,
    Place,
    Step,
    of_connector,
    of_link,
    of_statement,
)
from projections.links import Copy


@dataclass(frozen=True, slots=True)
class Branch:
    """A topic with what lies behind it in one direction.

    again: it stands elsewhere in the same tree already, with all that is behind it.
    more: there is something behind it, which is too far away to be shown.
    """

    place: Place
    steps: tuple[tuple[Step, tuple["Branch", ...]], ...] = ()
    again: bool = False
    more: bool = False


MOST_LEVELS = 64
"""Topics and tables behind each other in a tree."""


def steps(image: Image) -> list[Step]:
    """Every job that fills a topic or table, or that has filled one which may still be there.

    That is also a job that was deleted, and an earlier text of one. A link whose copy was purged,
    and what filled a topic that was deleted, is one of them as long as something was made of it,
    by a job or by a link.
    """
    jobs = [
        *(of_statement(one) for _, one in sorted(image.statements.items())),
        *(step for _, one in sorted(image.connectors.items()) for step in of_connector(one)),
    ]
    earlier = [
        step
        for _, step in sorted(image.replaced.steps.items())
        if not any(
            (one.kind, one.name) == (step.kind, step.name) and one.covers(step) for one in jobs
        )
    ]
    links = [of_link(one) for _, one in sorted(image.links.items())]
    gone = {one for one in earlier if one.state == DELETED}
    gone.update(one for one in links if one.copy == Copy.PURGED)
    kept = _kept(gone, (one for one in (*links, *jobs, *earlier) if one not in gone))
    return [
        *(one for one in links if one in kept),
        *sorted(
            (one for one in (*jobs, *earlier) if one in kept),
            key=lambda one: (one.kind == "connector", one.name),
        ),
    ]


def _kept(gone: Iterable[Step], there: Iterable[Step]) -> set[Step]:
    """The steps whose topics are there, and of the others those that something was made of."""
    filling: dict[Place, list[Step]] = {}
    for step in gone:
        for place in step.writes:
            filling.setdefault(place, []).append(step)
    waiting = deque(there)
    kept = set(waiting)
    while waiting:
        for place in waiting.popleft().reads:
            # of no use after the first one that reads it
            for step in filling.pop(place, ()):
                if step not in kept:
                    kept.add(step)
                    waiting.append(step)
    return kept


def made_with(image: Image, access: Access) -> list[tuple[Step, tuple[Place, ...]]]:
    """What was made of the topic that a request is about, with its application's rights.

    Statements and sinks that read it as this application, then all that is downstream of them; each
    with those of what it writes that its records came to.
    """
    source = (access.cluster, access.topic)
    known = _by(image, lambda step: step.reads)
    first = [one for one in known.get(source, ()) if one.application == access.application]
    waiting = deque((one, source) for one in first)
    found: dict[Step, dict[Place, None]] = {}
    while waiting:
        step, read = waiting.popleft()
        written = found.setdefault(step, {})
        for place in step.writes_from(read):
            if place not in written:
                written[place] = None
                waiting += [(one, place) for one in known.get(place, ())]
    return [(step, tuple(written)) for step, written in found.items()]


def _by(image: Image, places: Callable[[Step], Iterable[Place]]) -> dict[Place, list[Step]]:
    """Place -> the steps that have it among some of theirs."""
    found: dict[Place, list[Step]] = {}
    for step in steps(image):
        for place in dict.fromkeys(places(step)):
            found.setdefault(place, []).append(step)
    return found


def is_outside(place: Place) -> bool:
    """Whether it is no topic: a table, or what a connector does not tell more of."""
    return "://" in place[0] or place[0] == OUTSIDE


def upstream(image: Image, place: Place) -> Branch:
    """What the topic is made of."""
    known = _by(image, lambda step: step.writes)

    def behind(here: Place) -> list[tuple[Step, tuple[Place, ...]]]:
        return [(one, one.reads_for(here)) for one in known.get(here, [])]

    return _tree(place, behind, set())


def downstream(image: Image, place: Place) -> Branch:
    """What is made of the topic."""
    known = _by(image, lambda step: step.reads)
    return _tree(
        place, lambda here: [(one, one.writes_from(here)) for one in known.get(here, [])], set()
    )


def walk(branch: Branch) -> Iterator[Branch]:
    """Every topic of a tree, the root first."""
    yield branch
    for _, behind in branch.steps:
        for one in behind:
            yield from walk(one)


def product_of(image: Image, place: Place) -> str | None:
    """The product that a topic holds, also as a copy."""
    for product in image.catalog.values():
        if (product.cluster, product.topic) == place:
            return product.id
    for link in image.links.values():
        if (link.cluster, link.topic) == place and link.copy is not Copy.PURGED:
            return link.product
    return None


def readers(image: Image, place: Place) -> list[str]:
    """Applications that may read the topic by a grant."""
    found = {
        access.application
        for access in image.access.requests.values()
        if access.state in ENTITLED and (access.cluster, access.topic) == place
    }
    return sorted(found)


def _tree(
    place: Place,
    behind: Callable[[Place], list[tuple[Step, tuple[Place, ...]]]],
    seen: set[Place],
    level: int = 0,
) -> Branch:
    steps_behind = behind(place)
    if place in seen:
        return Branch(place, again=bool(steps_behind))
    if level == MOST_LEVELS:
        return Branch(place, more=bool(steps_behind))
    seen.add(place)
    found = [
        (step, tuple(_tree(one, behind, seen, level + 1) for one in _once(places)))
        for step, places in steps_behind
    ]
    return Branch(place, tuple(found))


def _once(places: Iterable[Place]) -> Iterable[Place]:
    return dict.fromkeys(places)
