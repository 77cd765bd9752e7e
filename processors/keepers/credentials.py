"""The credentials keeper: a login for every principal that the mesh has promised one."""

import time
from dataclasses import dataclass

import structlog

from mesh_events.errors import MeshError
from mesh_events.facts import CredentialsIssued, EffectFailed
from mesh_events.meta import Meta
from processors.crash_points import crash_point
from processors.keepers.checks import Clusters
from processors.keepers.keeper import Reign
from processors.keepers.lanes import Job, Lanes, OneByOne, for_a_while
from processors.keepers.retry import wait_before
from processors.secrets import SecretStore
from projections.identity import Credentials
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


class CredentialsKeeper:
    """Makes or rotates SCRAM logins whose latest wish is not fulfilled.

    A crash between password and fact only means that the password is made once more.
    """

    name = "credentials"

    def __init__(
        self,
        clusters: Clusters,
        secrets: SecretStore,
        lanes: Lanes | None = None,
    ) -> None:
        self._clusters, self._secrets, self._lanes = clusters, secrets, lanes or OneByOne()
        self._troubles: dict[tuple[str, str], Trouble] = {}

    def reconcile(self, image: Image, reign: Reign) -> None:
        """Issue what is wanted and not issued yet, each cluster in a lane of its own."""
        due: dict[str, list[Credentials]] = {}
        for pair in sorted(image.identity.credentials):
            wanted = image.identity.credentials[pair]
            if wanted.issued != wanted.generation and self._may_try(pair, wanted):
                due.setdefault(wanted.cluster, []).append(wanted)

        def job(here: list[Credentials]) -> Job:
            def run() -> None:
                for wanted in for_a_while(here):
                    self._issue(image, wanted, reign)

            return run

        self._lanes.run({cluster: job(here) for cluster, here in due.items()}, image, reign)

    def _may_try(self, pair: tuple[str, str], wanted: Credentials) -> bool:
        trouble = self._troubles.get(pair)
        if trouble is None or trouble.generation != wanted.generation:
            return True
        return time.monotonic() >= trouble.not_before

    def _issue(self, image: Image, wanted: Credentials, reign: Reign) -> None:
        principal, cluster = wanted.principal, wanted.cluster
        try:
            admin = self._clusters(image, cluster)
            reign.check()

            def use(password: str) -> None:
                admin.set_password(principal, password)
                # whoever came after us has stored a password of its own by now
                reign.check()

            self._secrets.issue(cluster, principal, use)
        except MeshError as error:
            log.warning("login_not_made", principal=principal, cluster=cluster, error=str(error))
            self._failed(wanted, str(error), reign)
            return
        crash_point("after-effect")
        reign.report(
            CredentialsIssued(
                meta=_meta(reign, wanted, "login"),
                principal=principal,
                cluster=cluster,
                generation=wanted.generation,
                reference=self._secrets.reference(cluster, principal),
            )
        )
        self._troubles.pop((principal, cluster), None)

    def _failed(self, wanted: Credentials, reason: str, reign: Reign) -> None:
        """Say it once, and try again ever more seldom."""
        pair = (wanted.principal, wanted.cluster)
        before = self._troubles.get(pair)
        again = before is not None and before.generation == wanted.generation
        attempts = before.attempts + 1 if before is not None and again else 1
        wait = wait_before(attempts, RETRY_FIRST_S, RETRY_MOST_S)
        self._troubles[pair] = Trouble(wanted.generation, attempts, time.monotonic() + wait)
        if again:
            return
        reign.report(
            EffectFailed(
                meta=_meta(reign, wanted, "login-failed"),
                subject=wanted.principal,
                effect="issue_credentials",
                cluster=wanted.cluster,
                generation=wanted.generation,
                reason=reason,
            )
        )


def _meta(reign: Reign, wanted: Credentials, step: str) -> Meta:
    principal = wanted.principal
    step = f"{step}-{wanted.cluster}"
    return reign.meta(principal, step, wanted.generation, correlation=principal)
