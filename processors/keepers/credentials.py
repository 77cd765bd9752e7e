"""The credentials keeper: a login for every principal that the mesh has promised one."""

import structlog

from mesh_events.errors import MeshError
from mesh_events.facts import CredentialsIssued, EffectFailed
from processors.crash_points import crash_point
from processors.keepers.checks import Clusters
from processors.keepers.keeper import Reign
from processors.secrets import SecretStore
from projections.identity import Credentials
from projections.image import Image

log = structlog.get_logger(__name__)


class CredentialsKeeper:
    """Makes or rotates SCRAM logins whose latest wish is not fulfilled.

    A crash between password and fact only means that the password is made once more.
    """

    name = "credentials"

    def __init__(self, clusters: Clusters, secrets: SecretStore) -> None:
        self._clusters, self._secrets = clusters, secrets

    def reconcile(self, image: Image, reign: Reign) -> None:
        """Issue what is wanted and not issued yet."""
        for pair in sorted(image.identity.credentials):
            wanted = image.identity.credentials[pair]
            if wanted.issued != wanted.generation:
                self._issue(image, wanted, reign)

    def _issue(self, image: Image, wanted: Credentials, reign: Reign) -> None:
        principal, cluster = wanted.principal, wanted.cluster
        try:
            admin = self._clusters(image, cluster)
            reign.check()
            password = self._secrets.issue(cluster, principal)
            admin.set_password(principal, password)
        except MeshError as error:
            log.warning("login_not_made", principal=principal, cluster=cluster, error=str(error))
            reign.report(
                EffectFailed(
                    meta=reign.meta(
                        principal,
                        f"login-failed-{cluster}",
                        wanted.generation,
                        correlation=principal,
                    ),
                    subject=principal,
                    effect="issue_credentials",
                    cluster=cluster,
                    generation=wanted.generation,
                    reason=str(error),
                )
            )
            return
        crash_point("after-effect")
        reign.report(
            CredentialsIssued(
                meta=reign.meta(
                    principal, f"login-{cluster}", wanted.generation, correlation=principal
                ),
                principal=principal,
                cluster=cluster,
                generation=wanted.generation,
                reference=self._secrets.reference(cluster, principal),
            )
        )
