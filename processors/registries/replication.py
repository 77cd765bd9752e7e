"""The schemas of a topic, carried into the registry of the cluster that it lies on."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from mesh_events.errors import InfrastructureError
from mesh_events.schema.definition import Version
from processors.registries.replica import RegistryReplica
from projections.identity import Cluster
from spark_streams.errors import CopyError

SIDES = ("key", "value")
ANEW_S = 60.0
"""So often what was carried is looked at again: somebody may have emptied the registry."""
CARRY_S = 60.0
"""One topic's schemas are carried for so long at once; the next time it goes on from there."""
MOST_DEEP = 100
"""A schema refers to others, and they to others, so many times at most."""


class Source(Protocol):
    """The registry that gives the ids; methods raise InfrastructureError."""

    def numbers(self, subject: str) -> tuple[int, ...]:
        """The versions that a subject has; () if there is no such subject."""

    def version(self, subject: str, number: int) -> Version:
        """One version of a subject."""


class Carried(Protocol):
    """Has the schemas of a topic in a cluster's own registry."""

    def carry(self, cluster: Cluster, topic: str, copy: str, *, anew: bool = False) -> None:
        """Have every version of `topic` there, under its id, as one of `copy`.

        What was carried is not looked at again for `ANEW_S`, unless `anew`. Does nothing for a
        cluster without a registry of its own.

        Raises:
            CopyError: `registry_differs`, it has something else under an id; `schema_too_deep`.
            MeshError: one of the registries does not answer, or `CARRY_S` have passed.
        """


class OneRegistry:
    """No cluster has a registry of its own: ids mean everywhere what they mean in the mesh's."""

    def carry(self, cluster: Cluster, topic: str, copy: str, *, anew: bool = False) -> None:
        """There is nothing to do."""
        del cluster, topic, copy, anew


class SchemaReplication:
    """Carries schemas from the mesh's registry.

    Args:
        source: opens the mesh's registry; one that was open may remember what is so no more.
        registry: opens a cluster's own.
        clock: seconds that only go forward.
    """

    def __init__(
        self,
        source: Callable[[], Source],
        registry: Callable[[Cluster], RegistryReplica],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open, self._registry, self._clock = source, registry, clock
        self._numbers = source()
        # of each subject in a cluster's registry
        self._carried: dict[tuple[Cluster, str], _Progress] = {}

    def carry(self, cluster: Cluster, topic: str, copy: str, *, anew: bool = False) -> None:
        """See `Carried`."""
        if cluster.registry_url is None:
            return
        until = self._clock() + CARRY_S
        for side in SIDES:
            self._carry(cluster, f"{topic}-{side}", f"{copy}-{side}", until, anew=anew)

    def _carry(
        self, cluster: Cluster, subject: str, there: str, until: float, *, anew: bool
    ) -> None:
        now, place = self._clock(), (cluster, there)
        progress = self._carried.get(place)
        # what was broken off goes on, however long all of it takes
        if progress is None or (progress.is_whole and (anew or now - progress.at >= ANEW_S)):
            progress = _Progress(now, frozenset() if progress is None else progress.there)
        new = sorted(set(self._numbers.numbers(subject)) - progress.known)
        if new:
            # unless it is broken off by the clock, the next time begins anew
            self._carried.pop(place, None)
            source, registry = self._open(), self._registry(cluster)
            carrying = _Carrying(source, registry, progress.needed, lambda: self._clock() > until)
            for number in new:
                if not carrying.bring(subject, number, there):
                    break
                progress.known.add(number)
        progress.is_whole = progress.known.issuperset(new)
        self._carried[place] = progress
        if progress.is_whole:
            progress.there = frozenset(progress.known)
        elif not progress.there.issuperset(new):
            raise InfrastructureError(
                f"carrying the schemas of {subject} to cluster {cluster.name} takes longer than "
                f"{CARRY_S:.0f} s, and goes on",
                retriable=True,
            )


@dataclass
class _Progress:
    """What a cluster's registry has been given for a subject.

    at: when that began, by the clock
    there: versions that were all there when it was last looked at as a whole
    known: versions of the subject
    needed: subject and number of the versions that they refer to
    is_whole: whether it was not broken off
    """

    at: float
    there: frozenset[int]
    known: set[int] = field(default_factory=set)
    needed: set[tuple[str, int]] = field(default_factory=set)
    is_whole: bool = True


@dataclass
class _Carrying:
    """Brings versions with what they refer to, the innermost first, until its time is over.

    Of each subject also the versions before: Apicurio numbers them by the order of making. One is
    brought however long that takes.
    """

    source: Source
    registry: RegistryReplica
    done: set[tuple[str, int]]
    is_over: Callable[[], bool]
    has_brought: bool = False

    def bring(self, subject: str, number: int, there: str) -> bool:
        """Bring a version as one of `there`; whether the time sufficed."""
        one = self.source.version(subject, number)
        if not self._bring_needed(one, 0) or self._is_late():
            return False
        self.registry.bring(replace(one, subject=there))
        self.has_brought = True
        return True

    def _is_late(self) -> bool:
        return self.has_brought and self.is_over()

    def _bring_needed(self, version: Version, depth: int) -> bool:
        if depth > MOST_DEEP:
            raise CopyError(
                "schema_too_deep",
                f"a schema that version {version.number} of {version.subject} needs refers to "
                f"others more than {MOST_DEEP} times in a row: refer to fewer",
            )
        for each in version.schema.references:
            for number in self.source.numbers(each.subject):
                place = each.subject, number
                if number > each.version or place in self.done:
                    continue
                inner = self.source.version(*place)
                if not self._bring_needed(inner, depth + 1) or self._is_late():
                    return False
                self.registry.bring(inner)
                self.done.add(place)
                self.has_brought = True
            if self._is_late():
                return False
        return True
