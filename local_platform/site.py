"""What every service description is built from: one mesh's folders, ports, jars, passwords."""

from dataclasses import dataclass
from pathlib import Path

from local_platform import domain_servers
from local_platform.endpoints import ClusterEndpoint, Endpoints
from local_platform.errors import UnknownServiceError
from local_platform.files import private_folder
from local_platform.jars.lock import JarStore, read_lock
from local_platform.layout import Layout
from local_platform.ports import HOST, OFFSETS, port
from local_platform.security.credentials import Credentials
from local_platform.security.transport import Transport, client_tls, recorded
from local_platform.settings import PlatformSettings
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.transport import Tls

CLUSTERS = ("east", "west")


@dataclass(frozen=True)
class Site:
    """One mesh on this machine, before anything runs."""

    settings: PlatformSettings
    layout: Layout
    jars: JarStore
    credentials: Credentials
    transport: Transport

    @classmethod
    def of(cls, settings: PlatformSettings) -> "Site":
        """Describe the mesh that the settings name; makes no folder."""
        layout = Layout(settings.home.absolute())
        jars = JarStore(settings.cache.absolute() / "jars", read_lock())
        transport = settings.tls or recorded(layout)
        return cls(settings, layout, jars, Credentials(layout.secrets), transport)

    @property
    def cache(self) -> Path:
        """The cache folder, absolute."""
        return self.settings.cache.absolute()

    @property
    def has_west_registry(self) -> bool:
        """Whether the cluster west has a schema registry of its own."""
        return self.settings.west_registry or self.layout.west_registry.is_dir()

    @property
    def tls(self) -> Tls | None:
        """How clients reach the brokers."""
        return client_tls(self.layout, self.transport)

    def login(self, cluster: str, principal: str) -> Connection:
        """How one of the platform's own principals logs in to a cluster."""
        password = self.credentials.password(cluster, principal)
        return Connection(self.address(f"kafka-{cluster}"), principal, password, self.tls)

    def port(self, listener: str) -> int:
        """Return the port of a listener (see `ports.OFFSETS`), or of a server of a domain's own."""
        if listener in OFFSETS:
            return port(self.settings.port_base, listener)
        offset = domain_servers.port_offset(self.layout, listener)
        if offset is None:
            raise UnknownServiceError(f"{listener} has no port here")
        return self.settings.port_base + offset

    def address(self, listener: str) -> str:
        """Return "127.0.0.1:<port>" of a listener."""
        return f"{HOST}:{self.port(listener)}"

    def registry_url(self, name: str) -> str:
        """Base of a registry's Confluent API."""
        return f"http://{self.address(name)}/apis/ccompat/v7"

    def spark_remote(self, listener: str) -> str:
        """Where a Spark server answers; without TLS, PySpark sends a token to "localhost" only."""
        return f"sc://localhost:{self.port(listener)}"

    def make_folders(self) -> None:
        """Make the home and its folders."""
        self.layout.home.mkdir(parents=True, exist_ok=True)
        for folder in (self.layout.data, self.layout.run):
            folder.mkdir(exist_ok=True)
        # a server's log may quote a record or a row
        for folder in (self.layout.logs, self.layout.conf, self.layout.secrets):
            private_folder(folder)

    def endpoints(self) -> Endpoints:
        """Return where the running mesh answers, generating missing passwords."""
        secret, tls = self.credentials.reference, self.tls
        return Endpoints(
            clusters={name: self._cluster(name) for name in CLUSTERS},
            registry_url=self.registry_url("registry"),
            registry_user="writer",
            registry_password=secret("registry", "writer"),
            registry_admin_user="admin",
            registry_admin_password=secret("registry", "admin"),
            connect_secrets=self.layout.secrets / "connectors",
            postgres_host=HOST,
            postgres_port=self.port("postgres"),
            postgres_user="postgres",
            postgres_password=secret("postgres", "postgres"),
            governor_url=f"http://{self.address('governor')}",
            tls_ca=tls and tls.ca,
            tls_certificate=tls and tls.certificate,
        )

    def _cluster(self, name: str) -> ClusterEndpoint:
        registry: dict[str, str] = {}
        if name == "west" and self.has_west_registry:
            registry = {
                "registry_url": self.registry_url("registry-west"),
                "registry_user": "admin",
                "registry_password": self.credentials.reference("registry-west", "admin"),
            }
        return ClusterEndpoint(
            name=name,
            bootstrap_servers=self.address(f"kafka-{name}"),
            admin_user="admin",
            admin_password=self.credentials.reference(name, "admin"),
            **registry,
        )
