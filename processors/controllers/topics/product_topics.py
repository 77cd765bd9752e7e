"""Looking for products whose topic somebody has deleted; it is told on the log and left.

A topic that is there again, and any other difference, is shown by `sdm drift` only: what the topic
was at publication is not in the image.
"""

import time
from dataclasses import dataclass, field

from mesh_events.facts import DriftKind
from processors.clusters import drift
from processors.clusters.drift import Finding
from processors.clusters.kafka import ClusterAdmin
from processors.controllers.rights.unexpected import LOOK_S
from processors.controllers.topics.drift_reporter import DriftReporter


@dataclass(slots=True)
class _Seen:
    """The products whose topic the last look at one cluster did not find, and when it was."""

    missing: frozenset[str] = frozenset()
    looked: float | None = None


@dataclass(slots=True)
class ProductTopics:
    """Looks for the topics of products.

    Args:
        look_s: seconds from one look at a cluster to the next.
    """

    look_s: float = LOOK_S
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def look(self, admin: ClusterAdmin, reporter: DriftReporter) -> None:
        """Look at one cluster if it is time; tell what was missing at the last look already.

        The image may be older than what is seen: the product may just be withdrawn.

        Raises:
            InfrastructureError: the cluster does not answer.
        """
        cluster, image, now = reporter.cluster, reporter.image, time.monotonic()
        before = self._seen.setdefault(cluster, _Seen())
        if before.looked is not None and now - before.looked < self.look_s:
            return
        products = [one for one in image.catalog.values() if one.cluster == cluster]
        names = admin.topic_names() if products else set()
        found = [
            Finding(
                kind=DriftKind.TOPIC_MISSING,
                cluster=cluster,
                subject=f"product/{one.id}",
                generation=one.generation,
                principal="",
                acls=frozenset(),
                topics=(one.topic,),
            )
            for one in products
            if one.topic not in names
        ]
        self._seen[cluster] = _Seen(frozenset(one.subject for one in found), now)
        certain = [one for one in found if one.subject in before.missing]
        reporter.left(certain, drift.TOPICS, uncertain=found)
