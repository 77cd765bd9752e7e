"""Rights on a cluster that the log does not explain: told, and the mesh's own principals' taken.

A stranger's right or denial is never touched.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from mesh_events.errors import InfrastructureError
from processors.clusters import drift
from processors.clusters.drift import Finding, Policy
from processors.clusters.kafka import ClusterAdmin
from processors.clusters.rights import Acl, Binding, Wish
from processors.controllers.flows.starts import Starts
from processors.controllers.topics.drift_reporter import DriftReporter

LOOK_S = 10.0
"""How often a cluster's ACLs are listed. Longer than a leader's lease, so that the image of the
next look holds all that any worker had read when it made what was seen at this one."""


@dataclass(slots=True)
class _Seen:
    """What the last look at one cluster found strange, and when."""

    acls: frozenset[Acl] = frozenset()
    looked: float | None = None


@dataclass(slots=True)
class UnexpectedAcls:
    """Looks for rights that nobody granted.

    Args:
        own: rights of the mesh's own principals on the governance cluster.
        policy: whether what the mesh's own principals hold without a grant is withdrawn.
        look_s: seconds from one look at a cluster to the next.
        starts: what the links' and the statements' controllers are just starting.
    """

    own: frozenset[Binding]
    policy: Policy = Policy.REPAIR
    look_s: float = LOOK_S
    starts: Starts = field(default_factory=Starts)
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def look(self, admin: ClusterAdmin, wishes: Iterable[Wish], reporter: DriftReporter) -> None:
        """Look at one cluster if it is time, and act on what was there at the last look already.

        The image may be older than what is seen: a right that is strange to it may be a grant's.

        Raises:
            InfrastructureError: the cluster does not answer, or a right does not go away.
        """
        cluster = reporter.cluster
        before, now = self._seen.setdefault(cluster, _Seen()), time.monotonic()
        if before.looked is not None and now - before.looked < self.look_s:
            return
        scene = drift.scene(reporter.image, cluster, wishes, self.own)
        found = list(drift.unexpected(scene, reporter.image, admin.acls(), self.starts))
        acls = frozenset(acl for one in found for acl in one.acls)
        self._seen[cluster] = _Seen(acls, now)
        certain = [
            replace(one, acls=one.acls & before.acls) for one in found if one.acls & before.acls
        ]
        left = [self._settle(one, admin, reporter) for one in certain]
        reporter.left([one for one in left if one.acls], drift.STRANGE, uncertain=found)

    def _settle(self, finding: Finding, admin: ClusterAdmin, reporter: DriftReporter) -> Finding:
        """Withdraw what may be withdrawn, and tell it; what is left of the finding."""
        unwanted = finding.repairable if self.policy is Policy.REPAIR else []
        if not unwanted:
            return finding
        reporter.leadership.check()
        admin.withdraw(unwanted)
        gone = frozenset(unwanted)
        still = gone & admin.acls(principal=finding.principal)
        if still:
            raise InfrastructureError(
                f"{finding.subject}: {len(still)} rights without a grant are not gone yet from "
                f"cluster {finding.cluster}",
                retriable=True,
            )
        reporter.repaired(replace(finding, acls=gone))
        return replace(finding, acls=finding.acls - gone)
