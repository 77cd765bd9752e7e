"""The registries controller: who reads a topic finds its schemas in the registry of its cluster.

A cluster may have a registry of its own, which follows the mesh's. The schemas of the products and
of the statements' results that lie there are carried into it; those of copies are their links'.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from mesh_events.errors import MeshError
from mesh_events.facts import EffectFailed
from processors.controllers.controller import Leadership, NotLeaderError
from processors.controllers.lanes import Job, Lanes, SerialLanes, for_a_while
from processors.registries.replication import Carried
from projections.identity import Cluster
from projections.image import Image

log = structlog.get_logger(__name__)
LOOK_S = 5.0
"""So often it is asked whether a topic has a new schema."""


@dataclass
class RegistriesController:
    """Keeps the registries that clusters have of their own; each domain's topics are a lane."""

    schemas: Carried
    lanes: Lanes = field(default_factory=SerialLanes)
    clock: Callable[[], float] = time.monotonic
    name: str = "registries"
    _looked: dict[tuple[Cluster, str], float] = field(default_factory=dict)
    _told: dict[tuple[Cluster, str], str] = field(default_factory=dict)

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Look at the topics that were not looked at for a while."""
        now = self.clock()
        jobs: dict[str, Job] = {}
        for cluster in image.identity.clusters.values():
            if cluster.registry_url is None:
                continue
            due: dict[str, list[tuple[str, int]]] = {}
            for topic, generation in _topics(image, cluster.name).items():
                if now - self._at(cluster, topic) >= LOOK_S:
                    due.setdefault(topic.partition(".")[0], []).append((topic, generation))
            for domain, topics in due.items():
                # those that were looked at last have their turn after the others
                topics.sort(key=lambda one: (self._at(cluster, one[0]), one[0]))
                jobs[f"{cluster.name}/{domain}"] = self._job(cluster, topics, leadership)
        self.lanes.run(jobs, image, leadership)

    def _at(self, cluster: Cluster, topic: str) -> float:
        """When a topic was looked at."""
        return self._looked.get((cluster, topic), float("-inf"))

    def _job(self, cluster: Cluster, due: list[tuple[str, int]], leadership: Leadership) -> Job:
        def run() -> None:
            for topic, generation in for_a_while(due):
                self._keep(cluster, topic, generation, leadership)

        return run

    def _keep(self, cluster: Cluster, topic: str, generation: int, leadership: Leadership) -> None:
        place = (cluster, topic)
        leadership.check()
        try:
            self.schemas.carry(cluster, topic, topic)
        except MeshError as error:
            log.warning("schemas_not_carried", topic=topic, cluster=cluster.name, error=str(error))
            self._failed(place, generation, str(error), leadership)
        except NotLeaderError:
            raise
        except Exception as error:  # noqa: BLE001 - a server's answer must not end the worker
            # the answer is a stranger's, and this log can be sent elsewhere
            kind = type(error).__name__
            log.error("schema_copy_error", topic=topic, cluster=cluster.name, error=kind)  # noqa: TRY400
            what = f"the registry of cluster {cluster.name} answers what cannot be read ({kind})"
            self._failed(place, generation, f"{what}: see what answers there", leadership)
        else:
            self._told.pop(place, None)
        self._looked[place] = self.clock()

    def _failed(
        self, place: tuple[Cluster, str], generation: int, reason: str, leadership: Leadership
    ) -> None:
        """Say it once, for as long as it is so."""
        cluster, topic = place
        if self._told.get(place) == reason:
            return
        self._told[place] = reason
        step = f"schemas-{cluster.name}-{cluster.generation}"
        leadership.report(
            EffectFailed(
                meta=leadership.meta(topic, step, generation, correlation=topic),
                subject=topic,
                effect="carry_schemas",
                cluster=cluster.name,
                generation=generation,
                reason=reason,
            )
        )


def _topics(image: Image, cluster: str) -> dict[str, int]:
    """Topics whose schemas belong there, with the generation of who wants them."""
    products = image.catalog.values()
    found = {one.topic: one.generation for one in products if one.cluster == cluster}
    for statement in image.statements.values():
        if statement.cluster == cluster and not statement.is_over:
            found.setdefault(statement.destination, statement.generation)
    return found
