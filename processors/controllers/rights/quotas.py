"""The quotas controller: what all domains together may append to the log in a second.

A budget is shared among the logins that append intents, so that the log grows no faster than a
worker folds it. Kafka counts by connection: a login that connects anew passes its share by.
Each login's share is the budget divided by the number of domains, rounded up to a power of two:
then the shares of all change seldom. It is an eighth at most: one login alone must not take what a
worker folds.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from mesh_events.errors import MeshError
from mesh_events.intents import intents_login
from mesh_events.kafka.client_quotas import PRODUCED, REQUESTS
from processors.controllers.checks.checks import Clusters
from processors.controllers.controller import Leadership, guarded
from processors.controllers.lanes import Lanes, SerialLanes
from projections.image import Image

log = structlog.get_logger(__name__)
AGAIN_S = 30.0
"""Wait after a call that failed."""
LEAST_BYTES_S, LEAST_PERCENT = 2 * 1024.0, 2.0
"""A login's least share: one record a second, as the local brokers count it.

The default budget has as much for 1 024 domains.
"""
LEAST_PARTS = 8
"""Parts of the budget; the share of a login is one part at most."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What all logins that append intents may take together; 0 for no quota.

    bytes_s: bytes per second that they append
    request_percent: time of one broker thread, in percent
    """

    bytes_s: float
    request_percent: float

    def share(self, logins: int) -> Mapping[str, float]:
        """The quotas of each of so many logins."""
        parts = max(LEAST_PARTS, 1 << max(0, logins - 1).bit_length())
        return {
            PRODUCED: max(LEAST_BYTES_S, self.bytes_s / parts) if self.bytes_s else 0.0,
            REQUESTS: (
                max(LEAST_PERCENT, self.request_percent / parts) if self.request_percent else 0.0
            ),
        }


class QuotasController:
    """Sets each login's share when a domain came or the shares changed, all once for each epoch.

    Args:
        clusters: gives the cluster's admin.
        budget: of all logins together.
        lanes: runs the calls beside the other controllers.
    """

    name = "quotas"

    def __init__(self, clusters: Clusters, budget: Budget, lanes: Lanes | None = None) -> None:
        self._clusters, self._budget, self._lanes = clusters, budget, lanes or SerialLanes()
        self._epoch: int | None = None
        self._set: dict[str, Mapping[str, float]] = {}
        self._not_before = 0.0

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Set the quotas that are not known to be set."""
        if self._epoch != leadership.epoch:
            self._epoch, self._set = leadership.epoch, {}
        domains = image.identity.domains
        share = self._budget.share(len(domains))
        due = [name for name in map(intents_login, domains) if self._set.get(name) != share]
        if due and time.monotonic() >= self._not_before:
            where = image.identity.governance_cluster
            self._lanes.run(
                {where: lambda: self._apply(image, due, share, leadership)}, image, leadership
            )

    def _apply(
        self, image: Image, logins: list[str], share: Mapping[str, float], leadership: Leadership
    ) -> None:
        where = image.identity.governance_cluster
        leadership.check()
        try:
            with guarded(f"cluster {where}"):
                self._clusters(image, where).set_quotas(dict.fromkeys(logins, share))
        except MeshError as error:
            log.warning("quotas_set_failed", cluster=where, logins=len(logins), error=str(error))
            self._not_before = time.monotonic() + AGAIN_S
            return
        self._set.update(dict.fromkeys(logins, share))
        log.info("quotas_set", cluster=where, logins=len(logins), **share)
