"""Composition root of the worker: `python -m processors`.

Real adapters are made here and nowhere else.
"""

import sys
from collections.abc import Callable
from threading import Lock

import faust

from mesh_events.checkpoint import origin_of
from mesh_events.emit import LogWriter
from mesh_events.errors import ConfigurationError, MeshError
from mesh_events.kafka import Connection
from mesh_events.references import resolve
from mesh_events.registry import Registry
from mesh_events.settings import Profile, key_path, notes_path
from mesh_events.signing import SigningKey
from mesh_events.transport import Tls
from processors import app as faust_app
from processors import founding, logs
from processors.checkpoint_store import CheckpointStore
from processors.clusters import ClusterAdmin, KafkaAdmin
from processors.crash_points import crash_point
from processors.domain_engine import DomainEngine
from processors.governor import Governor
from processors.keepers.checkpoints import CheckpointsKeeper
from processors.keepers.checks import ChecksKeeper, Clusters
from processors.keepers.connectors import ConnectorsKeeper
from processors.keepers.credentials import CredentialsKeeper
from processors.keepers.flow_ends import ClusterLogs, Reach
from processors.keepers.forwarding import ForwardingKeeper
from processors.keepers.keeper import Keeper
from processors.keepers.lanes import SideBySide
from processors.keepers.links import LinksKeeper, Mirrors
from processors.keepers.registries import RegistriesKeeper
from processors.keepers.rights import RightsKeeper
from processors.keepers.rows import RowsKeeper
from processors.keepers.schemas import SchemasKeeper
from processors.keepers.snapshots import SnapshotsKeeper
from processors.keepers.statements import StatementsKeeper
from processors.keepers.strangers import Strangers
from processors.lineage import LineageTopic
from processors.lineage_reader import LineageReader
from processors.log_registry import LogRegistry
from processors.log_watch import LogWatch
from processors.mirror.engine import MirrorEngine, NoEngine
from processors.own_registry import OwnRegistry
from processors.preflight import preflight
from processors.quarantine import Quarantine
from processors.quick_start import QuickStart
from processors.row_writer import RowWriter
from processors.schema_ids import Carried, SchemaIds
from processors.settings import GOVERNOR, WorkerSettings
from processors.worker import Worker
from projections.identity import Cluster
from projections.image import Image
from snapshots.place import open_store
from snapshots.store import Store
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


def build(settings: WorkerSettings) -> faust.App:
    """The app with everything it needs, nothing started yet."""
    connection = settings.governance(GOVERNOR)
    registry = LogRegistry(
        settings.registry_url,
        settings.registry_user,
        resolve(settings.registry_password),
        lambda: governor.image.schemas,
    )
    governor_key = SigningKey.load(key_path(settings.home, "governor"))
    keeper_key = SigningKey.load(key_path(settings.home, "keeper"))
    preflight(connection, settings.session_timeout_s)
    rows, quarantine = RowWriter(connection, registry), Quarantine(connection)
    decisions = LogWriter(
        connection, registry, governor_key, acknowledged=lambda: crash_point("before-ack")
    )
    facts = LogWriter(connection, registry, keeper_key)

    store = CheckpointStore(
        connection, notes_path(settings.home, settings.mesh), origin_of(settings.mesh)
    )
    watch = LogWatch(store, root_key(settings))
    governor = Governor(
        decisions, rows, quarantine.copy, watch, QuickStart(connection, snapshots(settings))
    )
    clusters, connect, gate = Admins(settings.tls), settings.connect(), Lock()
    schemas = SchemaIds(settings.registry, own_registry)
    keepers: list[Keeper] = [
        RowsKeeper(connection, registry, rows, lambda: governor.image),
        ChecksKeeper(
            clusters,
            registry,
            SideBySide("checks"),
            settings.tls,
            ClusterLogs(settings.tls),
            connect,
        ),
        CredentialsKeeper(clusters, settings.secrets(), SideBySide("credentials")),
        RightsKeeper(
            clusters,
            SideBySide("rights"),
            settings.drift,
            Strangers(founding.rights(), settings.drift, settings.look_s),
            settings.look_s,
            gate,
        ),
        links_keeper(settings, connection, clusters, registry, schemas),
        StatementsKeeper(
            Reach(clusters, ClusterLogs(settings.tls)),
            lambda domain: DomainEngine(domain, settings),
            settings.registry(),
            lambda: governor.image,
            LineageTopic(connection),
            lanes=SideBySide("statements"),
        ),
        ConnectorsKeeper(
            connect,
            clusters,
            lambda: governor.image,
            LineageTopic(connection),
            gate,
            lanes=SideBySide("connectors"),
            schema_text=registry.avro_text,
        ),
        SchemasKeeper(settings.subject_rules(), SideBySide("schemas")),
        RegistriesKeeper(schemas, SideBySide("registries")),
        CheckpointsKeeper(
            watch, store, keeper_key, settings.checkpoint_records, settings.checkpoint_s
        ),
        SnapshotsKeeper(connection, snapshots(settings), watch, settings.snapshot_records),
    ]
    if (receiver := settings.lineage_receiver()) is not None:
        keepers.append(ForwardingKeeper(lambda: LineageReader(connection), receiver))
    worker: list[Worker] = []

    def life() -> Worker:
        # asyncio's own objects must be made inside the running loop
        if not worker:
            worker.append(Worker(governor, connection, facts, keeper_key, keepers))
        return worker[0]

    return faust_app.build(
        connection,
        life,
        settings.governor_url,
        str(settings.home / "data" / "governor"),
        session_timeout_s=settings.session_timeout_s,
        reauth_s=settings.reauth_s,
    )


def root_key(settings: WorkerSettings) -> str | None:
    """The mesh's root as this home knows it: its own word, not the log's. None if it does not."""
    try:
        return Profile.load(settings.home).root_key
    except ConfigurationError:
        return None


def snapshots(settings: WorkerSettings) -> Callable[[], Store]:
    """Opens this home's snapshots of the log."""
    return lambda: open_store(settings.home, settings.mesh, root_key(settings) or "")


def own_registry(cluster: Cluster) -> OwnRegistry:
    """The registry that a cluster has of its own."""
    password = resolve(cluster.registry_password or "")
    return OwnRegistry(cluster.registry_url or "", cluster.registry_user or "", password)


def links_keeper(
    settings: WorkerSettings,
    connection: Connection,
    clusters: Clusters,
    registry: Registry,
    schemas: Carried,
) -> LinksKeeper:
    """The keeper of links over the mesh's own Spark Connect server."""
    token = resolve(settings.spark_token) if settings.spark_token else None
    # every worker of a mesh meets the same session, so that copies outlive the worker
    engine = SparkEngine(settings.spark_remote, token, settings.mesh)
    return LinksKeeper(
        Reach(clusters, ClusterLogs(settings.tls), schemas),
        engine,
        LineageTopic(connection),
        registry.avro_text,
        lanes=SideBySide("links"),
        mirrors=mirrors(settings),
    )


def mirrors(settings: WorkerSettings) -> Mirrors:
    """What copies by MirrorMaker run on: the mesh's Connect cluster, if it has one."""
    connect, lanes = settings.connect(), SideBySide("mirrors")
    if connect is None:
        nothing = NoEngine("this mesh has no Kafka Connect: set SDM_CONNECT_URL for its worker")
        return Mirrors(nothing, settings.connect_group, lanes)
    return Mirrors(MirrorEngine(connect.api, connect.secrets), connect.group, lanes)


def main() -> int:
    """Run until stopped."""
    try:
        settings = WorkerSettings.load()
        logs.configure(settings.log_level)
        app = build(settings)
    except MeshError as error:
        sys.stderr.write(f"the worker cannot start: {error}\n")
        return 1
    worker = faust.Worker(app, loglevel="warn", redirect_stdouts=False, quiet=True)
    worker.execute_from_commandline()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
