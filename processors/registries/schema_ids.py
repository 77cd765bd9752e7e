"""The schemas of a topic, carried into the registry of the cluster that it lies on."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from mesh_events.schema.definition import Version
from processors.registries.own_registry import OwnRegistry
from projections.identity import Cluster

SIDES = ("key", "value")
ANEW_S = 60.0
"""So often what was carried is looked at again: somebody may have emptied the registry."""


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
            CopyError: `registry_differs`, it has something else under an id.
            MeshError: one of the registries does not answer.
        """


class OneRegistry:
    """No cluster has a registry of its own: ids mean everywhere what they mean in the mesh's."""

    def carry(self, cluster: Cluster, topic: str, copy: str, *, anew: bool = False) -> None:
        """There is nothing to do."""
        del cluster, topic, copy, anew


class SchemaIds:
    """Carries schemas from the mesh's registry.

    Args:
        source: opens the mesh's registry; one that was open may remember what is so no more.
        registry: opens a cluster's own.
        clock: seconds that only go forward.
    """

    def __init__(
        self,
        source: Callable[[], Source],
        registry: Callable[[Cluster], OwnRegistry],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open, self._registry, self._clock = source, registry, clock
        self._numbers = source()
        # (cluster, subject there) -> the versions that are there, and when all were looked at
        self._there: dict[tuple[Cluster, str], tuple[frozenset[int], float]] = {}

    def carry(self, cluster: Cluster, topic: str, copy: str, *, anew: bool = False) -> None:
        """See `Carried`."""
        if cluster.registry_url is None:
            return
        for side in SIDES:
            subject, there = f"{topic}-{side}", f"{copy}-{side}"
            now = self._clock()
            known, at = self._there.get((cluster, there), (frozenset(), now))
            if anew or now - at >= ANEW_S:
                known, at = frozenset(), now
            new = sorted(set(self._numbers.numbers(subject)) - known)
            if not new:
                continue
            source, registry = self._open(), self._registry(cluster)
            for number in new:
                one = source.version(subject, number)
                for other in _needed(source, one):
                    registry.bring(other)
                registry.bring(replace(one, subject=there))
            self._there[cluster, there] = (known.union(new), at)


def _needed(source: Source, one: Version) -> Iterable[Version]:
    """What a schema refers to, the innermost first.

    Of each subject also the versions before: Apicurio numbers them by the order of making.
    """
    found: dict[tuple[str, int], Version] = {}

    def visit(version: Version) -> None:
        for each in version.schema.references:
            for number in source.numbers(each.subject):
                if number <= each.version and (each.subject, number) not in found:
                    inner = source.version(each.subject, number)
                    visit(inner)
                    found[each.subject, number] = inner

    visit(one)
    return found.values()
