"""What the worker is told: by the local platform's file, or by `SDM_*` variables."""

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from mesh_events import decisions as bounds
from mesh_events.errors import ConfigurationError
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.transport import Tls
from mesh_events.references import resolve
from mesh_events.schema.registry import Registry
from mesh_events.settings import HomeSettings, default_home
from processors.clusters.drift import Policy
from processors.clusters.secrets import SecretStore
from processors.connect.cluster import ConnectCluster
from processors.connect.connects import Connects
from processors.connect.own_worker import ConnectWorker, OwnWorker
from processors.connect.principals import group_of
from processors.connect.reachable import ReachableEntry
from processors.connect.rest import Connect
from processors.connect.secrets import ConnectSecrets
from processors.controllers.flows.partition_limit import MOST_PARTITIONS
from processors.controllers.rights.unexpected import LOOK_S
from processors.lineage.receiver import HttpReceiver
from processors.own_topics.wanted import Durability
from processors.registries.rest import RegistryRest
from processors.registries.subject_rules import SubjectRules
from processors.worker.leadership import LEASE_S
from snapshots.history import EVERY

GOVERNOR = "mesh.governor"
OPERATOR = "mesh.operator"


class ClusterSettings(BaseModel):
    """A cluster as the founder registers it; passwords are references.

    registry_url, registry_user, registry_password: the cluster's own schema registry, if any
    """

    name: str
    bootstrap_servers: str
    admin_user: str
    admin_password: str
    registry_url: str | None = None
    registry_user: str | None = None
    registry_password: str | None = None


class DomainSpark(BaseModel):
    """Where a domain's own Spark Connect server answers; the token is a reference."""

    remote: str
    token: str | None = None


class ConnectReach(BaseSettings):
    """Where connectors run, and what the operator lets them reach; see `WorkerSettings`."""

    model_config = SettingsConfigDict(env_prefix="SDM_", extra="ignore")

    domain_connect: dict[str, ConnectWorker] = Field(default_factory=dict)
    connect_databases: list[ReachableEntry] = Field(default_factory=list)
    connect_classes: dict[str, list[str]] = Field(default_factory=dict)


class WorkerSettings(BaseSettings):
    """Settings of founder and worker. Every password is a reference, env:NAME or file:PATH.

    home: folder of keys, profile and issued passwords (`SDM_HOME`)
    clusters: the clusters to be registered at the foundation, by name (`SDM_CLUSTERS`, JSON)
    governor_url: where the worker answers whether it is ready, and serves its metrics; on this
        machine alone by default (`SDM_GOVERNOR_URL`)
    drift: whether rights that somebody changed behind the mesh's back are put right, `repair`, or
        only told, `report` (`SDM_DRIFT`)
    replication_factor, min_insync_replicas: brokers that hold each of the mesh's own topics, and
        how many of them acknowledge a record (`SDM_REPLICATION_FACTOR`,
        `SDM_MIN_INSYNC_REPLICAS`)
    log_quota_kib_s: KiB per second that all domains together may append to the log
        (`SDM_LOG_QUOTA_KIB_S`); 0 for no quota
    log_quota_requests: time of one broker thread, in percent, that all logins of intents together
        may take (`SDM_LOG_QUOTA_REQUESTS`); 0 for no quota
    look_s: seconds from one look at a cluster's rights to the next, when nothing was said
        (`SDM_LOOK_S`); longer than a leadership's lease, see `UnexpectedAcls`
    reauth_s: age of a connection at which brokers ask for the login anew, as they are told
        (`SDM_REAUTH_S`)
    tls_ca, tls_certificate: how brokers are reached, see `mesh_events.kafka.transport`; without an
        authority there is no TLS
    session_timeout_s: how soon Kafka gives the log to a standby when this worker falls silent
    checkpoint_records, checkpoint_s: a checkpoint is signed over so many new records, or so long
        after the first of them
    snapshot_records: a snapshot is made of so many new records
    undecided_per_domain: undecided intents of a domain above which its next one is set aside
        (`SDM_UNDECIDED_PER_DOMAIN`)
    ids_per_domain: remembered ids of a domain's intents, of about the last hour, above which its
        next one is set aside (`SDM_IDS_PER_DOMAIN`)
    link_partitions: partitions of a topic above which no link copies it (`SDM_LINK_PARTITIONS`)
    statement_partitions: partitions of a topic above which no statement reads it
        (`SDM_STATEMENT_PARTITIONS`)
    applications_per_domain, products_per_domain, keys_per_domain, requests_per_domain,
        statements_per_domain, connectors_per_domain, links_per_domain: what a domain may have of
        each kind (`SDM_APPLICATIONS_PER_DOMAIN`, ...); ended ones included, ten times as many
    domain_spark: domain -> its own Spark Connect server, for its statements and for links of its
        products (`SDM_DOMAIN_SPARK`, JSON)
    domain_spark_command: for domains that are not named there: starts a domain's server unless it
        runs, is given the domain as last argument, prints {"remote": ..., "token": ...} as soon as
        it knows them, and ends when the server is ready
        (`SDM_DOMAIN_SPARK_COMMAND`, JSON)
    spark_remote, spark_token: a Spark Connect server for links of all domains that are not named in
        `SDM_DOMAIN_SPARK`; without one, those also run on a server of the domain's own
        (`SDM_SPARK_REMOTE`, `SDM_SPARK_TOKEN`)
    domain_connect: domain -> its own Connect worker, whose `group.id` is `connect.<domain>`
        (`SDM_DOMAIN_CONNECT`, JSON: url, user, password)
    domain_connect_command: for domains that are not named there: starts a domain's own worker
        unless it runs, is given the domain as last argument, prints {"url": ..., "user": ...,
        "password": ...} as soon as it knows them, and ends when the worker is ready
        (`SDM_DOMAIN_CONNECT_COMMAND`, JSON); one that runs no connector may be stopped at any time
    connect_url, connect_user, connect_password: the REST API of a Connect cluster for the
        connectors, and the links by MirrorMaker, of all domains that have no worker of their own;
        a connector without any fails with `connect_unavailable`
    connect_secrets: folder whose files connectors may name, written by the worker and read by
        Connect under the same path
    connect_group: the group of the workers of `connect_url`
    connect_shared_database: host:port of a database whose password all domains share, if any
    connect_databases: the other databases that connectors may reach, each as
        host:port[/database][=domain,...]; a host may begin with `*.` (`SDM_CONNECT_DATABASES`,
        JSON)
    connect_classes: classes of connectors of your own that domains may run -> the settings that
        they may have (`SDM_CONNECT_CLASSES`, JSON)
    lineage_url: base address of an OpenLineage receiver, such as Marquez, that lineage is forwarded
        to (`SDM_LINEAGE_URL`); without one it stays on its topic
    lineage_endpoint: path below it (`SDM_LINEAGE_ENDPOINT`)
    lineage_api_key: reference to the key that is sent as a bearer's token (`SDM_LINEAGE_API_KEY`)
    """

    # `SDM_SPARK_REMOTE=` in a file of variables names no server
    model_config = SettingsConfigDict(env_prefix="SDM_", extra="ignore", env_ignore_empty=True)

    home: Path = Field(default_factory=default_home)
    mesh: str = "local"
    governance_cluster: str
    clusters: dict[str, dict[str, str]]
    registry_url: str
    registry_user: str
    registry_password: str
    spark_remote: str | None = None
    spark_token: str | None = None
    governor_url: str = "http://127.0.0.1:19090"
    drift: Policy = Policy.REPAIR
    replication_factor: int = Field(default=3, ge=1, le=100)
    min_insync_replicas: int = Field(default=2, ge=1, le=100)
    log_quota_kib_s: int = Field(default=2048, ge=0, le=1_048_576)
    log_quota_requests: float = Field(default=100, ge=0, le=10_000)
    look_s: float = Field(default=LOOK_S, gt=LEASE_S, le=3600)
    reauth_s: int = Field(default=3600, ge=1, le=86_400)
    tls_ca: Path | None = None
    tls_certificate: Path | None = None
    session_timeout_s: float = Field(default=2, ge=1, le=60)
    checkpoint_records: int = Field(default=1000, ge=1, le=100_000)
    checkpoint_s: float = Field(default=5, ge=0, le=86_400)
    snapshot_records: int = Field(default=EVERY, ge=1, le=100_000)
    link_partitions: int = Field(default=MOST_PARTITIONS, ge=1, le=10_000)
    statement_partitions: int = Field(default=MOST_PARTITIONS, ge=1, le=10_000)
    undecided_per_domain: int = Field(default=bounds.UNDECIDED_PER_DOMAIN, ge=1, le=1_000_000)
    ids_per_domain: int = Field(default=bounds.IDS_PER_DOMAIN, ge=1, le=10_000_000)
    applications_per_domain: int = Field(default=bounds.APPLICATIONS_PER_DOMAIN, ge=1, le=1_000_000)
    products_per_domain: int = Field(default=bounds.PRODUCTS_PER_DOMAIN, ge=1, le=1_000_000)
    keys_per_domain: int = Field(default=bounds.KEYS_PER_DOMAIN, ge=1, le=1_000_000)
    requests_per_domain: int = Field(default=bounds.REQUESTS_PER_DOMAIN, ge=1, le=1_000_000)
    statements_per_domain: int = Field(default=bounds.STATEMENTS_PER_DOMAIN, ge=1, le=1_000_000)
    connectors_per_domain: int = Field(default=bounds.CONNECTORS_PER_DOMAIN, ge=1, le=1_000_000)
    links_per_domain: int = Field(default=bounds.LINKS_PER_DOMAIN, ge=1, le=1_000_000)
    domain_spark: dict[str, DomainSpark] = Field(default_factory=dict)
    domain_spark_command: list[str] = Field(default_factory=list)
    domain_connect: dict[str, ConnectWorker] = Field(default_factory=dict)
    domain_connect_command: list[str] = Field(default_factory=list)
    connect_url: str | None = None
    connect_user: str = ""
    connect_password: str = ""
    connect_secrets: Path | None = None
    connect_group: str = "connect-east"
    connect_shared_database: str | None = None
    connect_databases: list[ReachableEntry] = Field(default_factory=list)
    connect_classes: dict[str, list[str]] = Field(default_factory=dict)
    lineage_url: str | None = None
    lineage_endpoint: str = "api/v1/lineage"
    lineage_api_key: str | None = None
    log_level: str = "info"

    @classmethod
    def load(cls) -> Self:
        """Read the settings; raises ConfigurationError that names what is missing."""
        try:
            return cls()
        except ValidationError as error:
            fields = ", ".join(f"SDM_{e['loc'][0]!s}".upper() for e in error.errors() if e["loc"])
            raise ConfigurationError(
                f"settings are missing or wrong: {fields}; set them, or run `sdm up`"
            ) from error

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment before the local platform's file."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, _LocalPlatform(settings_cls)

    def cluster(self, name: str) -> ClusterSettings:
        """One of the configured clusters."""
        try:
            return ClusterSettings.model_validate({"name": name, **self.clusters[name]})
        except KeyError:
            raise ConfigurationError(f"SDM_CLUSTERS has no cluster {name}") from None

    @property
    def durability(self) -> Durability:
        """Of the mesh's own topics; raises ConfigurationError where no record could be written."""
        if self.min_insync_replicas > self.replication_factor:
            raise ConfigurationError(
                f"SDM_MIN_INSYNC_REPLICAS is {self.min_insync_replicas} and "
                f"SDM_REPLICATION_FACTOR {self.replication_factor}: fewer replicas than must "
                "acknowledge a record; set 2 and 3, or 1 and 1 on a single broker"
            )
        return Durability(self.replication_factor, self.min_insync_replicas)

    @property
    def tls(self) -> Tls | None:
        """How brokers are reached; raises ConfigurationError where a file is of no use."""
        return Tls.of(self.tls_ca, self.tls_certificate)

    def secrets(self) -> SecretStore:
        """Where issued passwords lie."""
        return SecretStore(self.home / "secrets")

    def registry(self) -> Registry:
        """The registry, with the right to register."""
        return Registry(self.registry_url, self.registry_user, resolve(self.registry_password))

    def subject_rules(self) -> SubjectRules:
        """What the registry asks of subjects, with the right to change it."""
        password = resolve(self.registry_password)
        return SubjectRules(RegistryRest(self.registry_url, self.registry_user, password))

    def connect(self) -> ConnectCluster | None:
        """The Connect cluster of `connect_url`; raises ConfigurationError without its folder."""
        if self.connect_url is None:
            return None
        login = self.connect_user, resolve(self.connect_password)
        return self._connect_cluster(Connect(self.connect_url, login), self.connect_group)

    def connects(self) -> Connects:
        """The Connect cluster of each domain; raises ConfigurationError as `connect`."""
        start = self.domain_connect_command

        def own(domain: str) -> ConnectCluster | None:
            named = self.domain_connect.get(domain)
            if named is None and not start:
                return None
            return self._connect_cluster(OwnWorker(domain, start, named), group_of(domain))

        if start or self.domain_connect:
            self._connect_secrets()
        return Connects(self.connect(), own)

    def _connect_cluster(self, api: Connect, group: str) -> ConnectCluster:
        return ConnectCluster(
            api,
            self._connect_secrets(),
            group,
            self.connect_shared_database,
            tuple(self.connect_databases),
            self.connect_classes,
        )

    def _connect_secrets(self) -> ConnectSecrets:
        if self.connect_secrets is None:
            raise ConfigurationError(
                "SDM_CONNECT_SECRETS is not set: name the folder that Connect reads secrets from"
            )
        return ConnectSecrets(self.connect_secrets)

    def lineage_receiver(self) -> HttpReceiver | None:
        """Who lineage is forwarded to, None for nobody; raises ConfigurationError."""
        if not self.lineage_url:
            return None
        key = resolve(self.lineage_api_key) if self.lineage_api_key else None
        return HttpReceiver(self.lineage_url, self.lineage_endpoint, key)

    def governance(self, principal: str) -> Connection:
        """The login of one of the mesh's own principals on the governance cluster."""
        reference = self.secrets().reference(self.governance_cluster, principal)
        servers = self.cluster(self.governance_cluster).bootstrap_servers
        return Connection(servers, principal, resolve(reference), self.tls)

    def administration(self, name: str) -> Connection:
        """The login that administers one of the configured clusters."""
        found = self.cluster(name)
        password = resolve(found.admin_password)
        return Connection(found.bootstrap_servers, found.admin_user, password, self.tls)


class _LocalPlatform(PydanticBaseSettingsSource):
    """What the local platform wrote into `platform.json`; nothing where there is none."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        """Not used: the source gives all its values at once."""
        del field
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Field -> value."""
        # the local platform is one way to run the worker, not a need of it
        from local_platform.domain_servers import command
        from local_platform.endpoints import Endpoints
        from local_platform.errors import NoLocalMeshError

        try:
            found = Endpoints.load(HomeSettings().home)
        except NoLocalMeshError:
            return {}
        return {
            "governance_cluster": found.governance_cluster,
            "clusters": {
                name: cluster.model_dump(exclude={"name"}, exclude_none=True)
                for name, cluster in found.clusters.items()
            },
            "registry_url": found.registry_url,
            "registry_user": found.registry_user,
            "registry_password": found.registry_password,
            "spark_remote": found.spark_remote,
            "spark_token": found.spark_token,
            "domain_spark_command": command("domain-server"),
            "domain_connect_command": [] if found.connect_url else command("connect-worker"),
            "connect_url": found.connect_url,
            "connect_user": found.connect_user,
            "connect_password": found.connect_password,
            "connect_group": found.connect_group,
            "connect_secrets": found.connect_secrets,
            "connect_shared_database": found.shared_database,
            "governor_url": found.governor_url,
            "replication_factor": found.replication_factor,
            "min_insync_replicas": found.min_insync_replicas,
            "tls_ca": found.tls_ca,
            "tls_certificate": found.tls_certificate,
        }
