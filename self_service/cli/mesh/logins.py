"""With which login a command on topics goes to which cluster."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mesh_events.errors import ConfigurationError, MeshError
from mesh_events.intents import domain_of
from mesh_events.meta import MESH_DOMAIN
from self_service.cli.domain.credentials import login_of, read_properties
from self_service.cli.framework import completion
from self_service.cli.framework.exits import UsageError
from self_service.cli.mesh import lookup
from self_service.cli.mesh.reachability import require_answer

if TYPE_CHECKING:
    from mesh_events.kafka.connection import Connection
    from projections.image import Image
    from self_service.cli.mesh.context import Mesh


@dataclass(frozen=True, kw_only=True)
class Login:
    """Options that choose login and cluster; the default is the domain at its home cluster."""

    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            help="Cluster; default: the home cluster, and the log's for mesh.* topics.",
            autocompletion=completion.clusters,
        ),
    ] = None
    application: Annotated[
        str | None,
        typer.Option(
            "--application",
            help="Log in as this application instead of the domain.",
            autocompletion=completion.applications,
        ),
    ] = None
    client: Annotated[
        Path | None,
        typer.Option("--client", help="Log in with this client file, see `access credentials`."),
    ] = None

    def connection(self, mesh: "Mesh", domain: str | None, topic: str = "") -> "Connection":
        """The login that the options choose for a topic.

        Raises UsageError where they contradict each other, ConfigurationError where a file is
        missing, NotFoundError for an unknown cluster or application.
        """
        if self.client is not None:
            if self.cluster or self.application:
                raise UsageError("--client sets login and cluster: leave out the other options")
            found = login_of(read_properties(self.client))
            require_answer(found.bootstrap_servers)
            _require_transport(self.client, found, mesh)
            return found
        if topic.startswith(f"{MESH_DOMAIN}.") and not self.cluster and not self.application:
            who = mesh.acting_as(domain) if domain else mesh.reader
            return mesh.governance(who)
        image = mesh.image()
        if self.application is not None:
            lookup.application(image, self.application)
            home = image.identity.domains[domain_of(self.application)].cluster
            return mesh.login(image, self.cluster or home, self.application)
        who = mesh.acting_as(domain)
        return mesh.login(image, self.cluster or home_of(image, who.domain), who.principal)


def _require_transport(client: Path, login: "Connection", mesh: "Mesh") -> None:
    """Raise ConfigurationError for a file from before its cluster's listeners changed.

    Kafka's clients say of that only that a broker hangs up. The file may also lead to a cluster
    that no mesh here knows: then nothing is said.
    """
    try:
        if _shows(login) >= _shows(mesh) and bool(login.tls) == bool(mesh.tls):
            return
        known = [one.bootstrap_servers for one in mesh.image().identity.clusters.values()]
    except MeshError:
        return
    if login.bootstrap_servers in known:
        raise ConfigurationError(
            f"{client} uses {_SHOWN[_shows(login)]}, the brokers of this mesh require "
            f"{_SHOWN[_shows(mesh)]}: write it "
            f"again, with a new password: `sdm access credentials {login.user} "
            f"--out {client} -d {domain_of(login.user)}`"
        )


_SHOWN = ("no TLS", "TLS without a certificate", "TLS with a certificate")


def _shows(found: "Connection | Mesh") -> int:
    """How much of itself a login, or the mesh with its own, shows to brokers: see `_SHOWN`."""
    if found.tls is None:
        return 0
    return 2 if found.tls.certificate else 1


def home_of(image: "Image", domain: str) -> str:
    """A domain's home cluster; the operator's is the one that holds the log."""
    if domain == MESH_DOMAIN:
        return image.identity.governance_cluster
    return lookup.domain(image, domain).cluster
