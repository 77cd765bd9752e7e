"""The controllers that carry out what the log says, each over the real thing that it keeps.

Part of the composition root (`__main__`): real clusters, registries and engines are made here.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial

from mesh_events.kafka.connection import Connection
from mesh_events.kafka.transport import Tls
from mesh_events.references import resolve
from mesh_events.schema.registry import Registry
from processors import bootstrap
from processors.clusters.kafka import ClusterAdmin, KafkaAdmin
from processors.connect.cluster import NO_CONNECT, ConnectCluster
from processors.connect.connects import Connects
from processors.connect.principals import group_of
from processors.controllers.checks.checks import ChecksController, Clusters, Servers
from processors.controllers.connectors.connectors import ConnectorsController
from processors.controllers.controller import Controller
from processors.controllers.flows.ends import ClusterLogs, Reach
from processors.controllers.flows.partition_limit import Most
from processors.controllers.flows.starts import Starts
from processors.controllers.forwarding import ForwardingController
from processors.controllers.gates import Gates
from processors.controllers.lanes import ThreadedLanes
from processors.controllers.links.links import LinksController, Mirrors
from processors.controllers.rights.credentials import CredentialsController
from processors.controllers.rights.quotas import Budget, QuotasController
from processors.controllers.rights.rights import RightsController
from processors.controllers.rights.unexpected import UnexpectedAcls
from processors.controllers.run_ends import RunEndsController
from processors.controllers.statements.statements import StatementsController
from processors.controllers.topics.product_topics import ProductTopics
from processors.controllers.topics.registries import RegistriesController
from processors.controllers.topics.schemas import SchemasController
from processors.governor.waiting import Awaited
from processors.lineage.events import LineageTopic
from processors.lineage.reader import LineageReader, recent
from processors.mirror.engine import MirrorEngine, NoEngine
from processors.registries.replica import RegistryReplica
from processors.registries.replication import Carried, SchemaReplication
from processors.settings import WorkerSettings
from processors.spark.domain_engine import DomainEngine
from processors.spark.error_files import ErrorFiles
from projections.identity import Cluster
from projections.image import Image
from spark_streams.engine import FlowEngine
from spark_streams.spark import SparkEngine


class Admins:
    """One admin per registered cluster, made anew when its registration or password changes."""

    def __init__(self, tls: Tls | None) -> None:
        self._tls = tls
        self._known: dict[tuple[Cluster, str], ClusterAdmin] = {}

    def __call__(self, image: Image, name: str) -> ClusterAdmin:
        """The admin of a cluster of the image."""
        cluster = image.identity.clusters[name]
        password = resolve(cluster.admin_password)
        if (cluster, password) not in self._known:
            servers, user = cluster.bootstrap_servers, cluster.admin_user
            login = Connection(servers, user, password, self._tls)
            self._known[cluster, password] = KafkaAdmin(name, login)
        return self._known[cluster, password]


def enforcers(
    settings: WorkerSettings,
    connection: Connection,
    registry: Registry,
    image: Callable[[], Image],
    waiting: Callable[[], Mapping[int, Awaited]],
) -> list[Controller]:
    """The controllers of rights, logins, links, statements, connectors and schemas.

    The connection is the governor's at the governance cluster; `image` tells the state of the log
    as the governor has folded it, `waiting` what it found waiting for a check.
    """
    clusters, connects, gates = Admins(settings.tls), settings.connects(), Gates()
    schemas = SchemaReplication(settings.registry, registry_replica)
    starts = Starts()
    unexpected = UnexpectedAcls(bootstrap.rights(), settings.drift, settings.look_s, starts)
    controllers: list[Controller] = [
        ChecksController(
            clusters,
            registry,
            waiting,
            ThreadedLanes("checks"),
            Servers(settings.tls, ClusterLogs(settings.tls), connects),
            Most(settings.link_partitions, settings.statement_partitions),
        ),
        CredentialsController(clusters, settings.secrets(), ThreadedLanes("credentials")),
        QuotasController(
            clusters,
            Budget(settings.log_quota_kib_s * 1024.0, settings.log_quota_requests),
            ThreadedLanes("quotas"),
        ),
        RightsController(
            clusters,
            ThreadedLanes("rights"),
            settings.drift,
            unexpected,
            settings.look_s,
            gates,
            ProductTopics(settings.look_s),
        ),
        links_controller(settings, connection, clusters, registry, schemas, connects, starts),
        StatementsController(
            Reach(
                clusters,
                ClusterLogs(settings.tls),
                errors=ErrorFiles(settings.home),
                most_partitions=settings.statement_partitions,
                starts=starts,
                gates=gates,
            ),
            lambda domain: DomainEngine(domain, settings),
            settings.registry(),
            image,
            LineageTopic(connection),
            lanes=ThreadedLanes("statements", of_domains=True),
        ),
        ConnectorsController(
            connects,
            clusters,
            image,
            LineageTopic(connection),
            registry.numbers,
            gates,
            lanes=ThreadedLanes("connectors"),
            schema_text=registry.avro_text,
            errors=ErrorFiles(settings.home),
        ),
        SchemasController(settings.subject_rules(), ThreadedLanes("schemas")),
        RegistriesController(schemas, ThreadedLanes("registries")),
    ]
    lineage = LineageTopic(connection)
    controllers.append(RunEndsController(lambda: recent(connection), lineage, registry.avro_text))
    if (receiver := settings.lineage_receiver()) is not None:
        controllers.append(ForwardingController(lambda: LineageReader(connection), receiver))
    return controllers


def registry_replica(cluster: Cluster) -> RegistryReplica:
    """The registry that a cluster has of its own."""
    password = resolve(cluster.registry_password or "")
    return RegistryReplica(cluster.registry_url or "", cluster.registry_user or "", password)


def links_controller(
    settings: WorkerSettings,
    connection: Connection,
    clusters: Clusters,
    registry: Registry,
    schemas: Carried,
    connects: Connects,
    starts: Starts | None = None,
) -> LinksController:
    """The controller of links, each on a server of the domain that it copies from."""
    return LinksController(
        Reach(
            clusters,
            ClusterLogs(settings.tls),
            schemas,
            ErrorFiles(settings.home),
            settings.link_partitions,
            starts,
        ),
        link_engines(settings),
        LineageTopic(connection),
        registry.avro_text,
        lanes=partial(ThreadedLanes, of_domains=True),
        mirrors=mirrors(connects),
    )


def link_engines(settings: WorkerSettings) -> Callable[[str], FlowEngine]:
    """Domain -> what runs the links of its products.

    Its own server, unless the settings name one that serves all that have none of their own.
    """

    def own(domain: str) -> FlowEngine:
        return DomainEngine(domain, settings, session=f"{settings.mesh}/{domain}/links")

    if settings.spark_remote is None:
        return own
    token = resolve(settings.spark_token) if settings.spark_token else None
    # every worker of a mesh meets the same session, so that copies outlive the worker
    shared = SparkEngine(settings.spark_remote, token, settings.mesh)
    return lambda domain: own(domain) if domain in settings.domain_spark else shared


def mirrors(connects: Connects) -> Mirrors:
    """What copies by MirrorMaker run on: the Connect cluster of the domain that they copy from."""

    @cache
    def on(connect: ConnectCluster | None) -> FlowEngine:
        if connect is None:
            return NoEngine(NO_CONNECT)
        return MirrorEngine(connect.api, connect.secrets)

    def group(domain: str) -> str:
        connect = connects.of(domain)
        # nothing runs where there is none
        return connect.group if connect is not None else group_of(domain)

    return Mirrors(lambda domain: on(connects.of(domain)), group)
