"""Where a running mesh answers: addresses, users and references to their passwords."""

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from local_platform.errors import NoLocalMeshError
from local_platform.layout import Layout
from mesh_events.files import write_atomically
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.transport import Tls
from mesh_events.references import resolve

CONNECT_GROUP = "connect-east"
"""The group of Connect workers that all domains share, whose own topics lie on the cluster east."""


class ClusterEndpoint(BaseModel):
    """One Kafka cluster, to log in with SCRAM-SHA-512.

    admin_password: a reference, "file:/abs/path" (see `mesh_events.references.resolve`)
    registry_url: base of the Confluent API of the cluster's own registry, if it has one
    registry_user, registry_password: who may write there under given ids; a reference
    """

    model_config = ConfigDict(frozen=True)

    name: str
    bootstrap_servers: str
    admin_user: str
    admin_password: str
    registry_url: str | None = None
    registry_user: str | None = None
    registry_password: str | None = None


class Endpoints(BaseModel):
    """All addresses of one mesh; every password is a reference, so this file is no secret.

    clusters: name ("east", "west") -> cluster
    registry_url: base of the Confluent API; reading needs no user
    registry_user, registry_password: may register schemas
    registry_admin_user, registry_admin_password: may also set global rules
    connect_url, connect_user, connect_password: the REST API of a Connect cluster of all domains;
        the local platform starts a worker for each domain, when it is first needed
    connect_secrets: folder whose files connectors may name as `${dir:<folder>:<file>}`
    connect_group: the group of the workers of `connect_url`
    replication_factor, min_insync_replicas: of the mesh's own topics; the local platform has one
        broker for each cluster
    tls_ca, tls_certificate: PEM files for clients of the brokers; none: no TLS
    spark_remote: a Spark Connect server for the links of all domains; the local platform starts one
        for each domain, when it is first needed
    spark_token: reference of its bearer token, to be set as SPARK_CONNECT_AUTHENTICATE_TOKEN
    """

    model_config = ConfigDict(frozen=True)

    clusters: dict[str, ClusterEndpoint]
    governance_cluster: str = "east"
    registry_url: str
    registry_user: str
    registry_password: str
    registry_admin_user: str
    registry_admin_password: str
    connect_url: str | None = None
    connect_user: str = ""
    connect_password: str = ""
    connect_secrets: Path
    connect_group: str = CONNECT_GROUP
    postgres_host: str
    postgres_port: int
    postgres_user: str
    postgres_password: str
    postgres_database: str = "east"
    spark_remote: str | None = None
    spark_token: str | None = None
    governor_url: str
    replication_factor: int = 1
    min_insync_replicas: int = 1
    tls_ca: Path | None = None
    tls_certificate: Path | None = None

    @classmethod
    def load(cls, home: Path) -> Self:
        """Read the endpoints of the mesh at `home`.

        Raises:
            NoLocalMeshError: nothing was started there, or its record cannot be read.
        """
        try:
            return cls.model_validate_json(Layout(home).endpoints.read_bytes())
        except FileNotFoundError:
            raise NoLocalMeshError(f"no local mesh at {home}: run `sdm up`") from None
        except PermissionError:
            raise NoLocalMeshError(
                f"the local mesh at {home} belongs to another user: set SDM_HOME to your own"
            ) from None
        except ValidationError as fault:
            raise NoLocalMeshError(
                f"{Layout(home).endpoints} cannot be read (was it written by another "
                f"version?): run `sdm down` and `sdm up` ({fault.error_count()} faults)"
            ) from None

    @property
    def tls(self) -> Tls | None:
        """How clients reach the brokers; raises ConfigurationError for a file of no use."""
        return Tls.of(self.tls_ca, self.tls_certificate)

    @property
    def shared_database(self) -> str:
        """host:port of the example database, whose password all domains' connectors may use."""
        return f"{self.postgres_host}:{self.postgres_port}"

    def administration(self, cluster: str) -> Connection:
        """The super user's login to a cluster; password and files are looked up now."""
        found = self.clusters[cluster]
        password = resolve(found.admin_password)
        return Connection(found.bootstrap_servers, found.admin_user, password, self.tls)

    def postgres_login(self) -> dict[str, Any]:
        """How psycopg connects to the example database; its password is resolved now."""
        return {
            "host": self.postgres_host,
            "port": self.postgres_port,
            "user": self.postgres_user,
            "password": resolve(self.postgres_password),
            "dbname": self.postgres_database,
        }

    def save(self, home: Path) -> None:
        """Write the endpoints for `load`."""
        write_atomically(Layout(home).endpoints, self.model_dump_json(indent=2) + "\n")
