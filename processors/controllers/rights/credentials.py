"""The credentials controller: a login for every principal that the mesh has promised one."""

import time
from dataclasses import dataclass

import structlog

from mesh_events.errors import MeshError, RefusedError
from mesh_events.facts import CredentialsIssued, EffectFailed
from mesh_events.meta import Meta
from processors.clusters import logins
from processors.clusters.kafka import ClusterAdmin
from processors.clusters.secrets import SecretStore
from processors.controllers.checks.checks import Clusters
from processors.controllers.controller import Leadership, guarded
from processors.controllers.lanes import Job, Lanes, SerialLanes, for_a_while, in_turn
from processors.controllers.retry import wait_before
from processors.crash_points import crash_point
from projections.identity import ISSUE_CREDENTIALS, Credentials
from projections.image import Image

log = structlog.get_logger(__name__)


RETRY_FIRST_S, RETRY_MOST_S = 1.0, 60.0
"""Wait before the second try of a login that could not be made, doubled up to the most."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A login that could not be made at this generation, and when it is tried again."""

    generation: int
    attempts: int
    not_before: float


class CredentialsController:
    """Makes or rotates SCRAM logins whose latest wish is not fulfilled.

    A crash between password and fact only means that the password is set once more. A login that
    somebody else has made is left as it is, see `logins`.
    """

    name = "credentials"

    def __init__(
        self,
        clusters: Clusters,
        secrets: SecretStore,
        lanes: Lanes | None = None,
    ) -> None:
        self._clusters, self._secrets, self._lanes = clusters, secrets, lanes or SerialLanes()
        self._troubles: dict[tuple[str, str], Trouble] = {}

    def reconcile(self, image: Image, leadership: Leadership) -> None:
        """Issue what is wanted and not issued yet, each cluster in a lane of its own."""
        due: dict[str, list[Credentials]] = {}
        for pair in sorted(image.identity.credentials):
            wanted = image.identity.credentials[pair]
            if wanted.issued != wanted.generation and self._may_try(pair, wanted):
                due.setdefault(wanted.cluster, []).append(wanted)

        def job(here: list[Credentials]) -> Job:
            def run() -> None:
                for wanted in for_a_while(in_turn(here, _domain)):
                    self._issue(image, wanted, leadership)

            return run

        self._lanes.run({cluster: job(here) for cluster, here in due.items()}, image, leadership)

    def _may_try(self, pair: tuple[str, str], wanted: Credentials) -> bool:
        trouble = self._troubles.get(pair)
        if trouble is None or trouble.generation != wanted.generation:
            return True
        return time.monotonic() >= trouble.not_before

    def _issue(self, image: Image, wanted: Credentials, leadership: Leadership) -> None:
        principal, cluster = wanted.principal, wanted.cluster
        try:
            with guarded(f"cluster {cluster}"):
                self._set(self._clusters(image, cluster), wanted, leadership)
        except MeshError as error:
            log.warning(
                "credential_create_failed", principal=principal, cluster=cluster, error=str(error)
            )
            self._failed(wanted, error, leadership)
            return
        crash_point("after-effect")
        leadership.report(
            CredentialsIssued(
                meta=_meta(leadership, wanted, "login"),
                principal=principal,
                cluster=cluster,
                generation=wanted.generation,
                reference=self._secrets.reference(cluster, principal),
            )
        )
        self._troubles.pop((principal, cluster), None)

    def _set(self, admin: ClusterAdmin, wanted: Credentials, leadership: Leadership) -> None:
        """Set a new password on the cluster, unless the login is somebody else's, and store it."""
        principal, cluster, secrets = wanted.principal, wanted.cluster, self._secrets
        stored = secrets.known(cluster, principal)
        password = secrets.prepare(cluster, principal)
        place = secrets.prepared(cluster, principal)
        # a reference stands on the log once a password was issued, whatever is wanted now
        issued = wanted.reference is not None
        logins.require_ours(admin, principal, stored, issued=issued, place=place)
        leadership.check()
        admin.set_password(principal, password)
        crash_point("after-password")
        # whoever came after us has stored a password of its own by now
        leadership.check()
        secrets.promote(cluster, principal, password)

    def _failed(self, wanted: Credentials, error: MeshError, leadership: Leadership) -> None:
        """Say it once, and try again ever more seldom."""
        pair = (wanted.principal, wanted.cluster)
        before = self._troubles.get(pair)
        again = before is not None and before.generation == wanted.generation
        attempts = before.attempts + 1 if before is not None and again else 1
        wait = wait_before(attempts, RETRY_FIRST_S, RETRY_MOST_S)
        self._troubles[pair] = Trouble(wanted.generation, attempts, time.monotonic() + wait)
        if again:
            return
        leadership.report(
            EffectFailed(
                meta=_meta(leadership, wanted, "login-failed"),
                subject=wanted.principal,
                effect=ISSUE_CREDENTIALS,
                cluster=wanted.cluster,
                generation=wanted.generation,
                reason=str(error),
                code=error.code if isinstance(error, RefusedError) else "cluster_unavailable",
            )
        )


def _domain(wanted: Credentials) -> str:
    """Whose login it is: a domain that asks for thousands delays its own."""
    return wanted.principal.partition(".")[0]


def _meta(leadership: Leadership, wanted: Credentials, step: str) -> Meta:
    principal = wanted.principal
    step = f"{step}-{wanted.cluster}"
    return leadership.meta(principal, step, wanted.generation, correlation=principal)
