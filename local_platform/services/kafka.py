"""A Kafka cluster of one KRaft node: SCRAM, the standard authorizer, nothing without an ACL."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from uuid import uuid4

from local_platform.errors import ServiceFailedError
from local_platform.jars.class_archive import ClassArchive
from local_platform.jars.java import java, large_jvm, log4j_options, properties
from local_platform.jars.scala_jars import broker_jar, compile_for_brokers
from local_platform.jvm import AUTHORIZER, EARLIEST_MS, JVM_BOUNDS, POLICY
from local_platform.quotas import ensure_quotas
from local_platform.security.principals import Asking, ensure_principals, principals_of
from local_platform.security.transport import Transport, broker_settings
from local_platform.services.base import Command, Service
from local_platform.site import CLUSTERS, Site
from mesh_events.files import write_atomically
from mesh_events.kafka.connection import jaas
from mesh_events.kafka.transport import protocol

_DIRECT_MB = 256
_MIB = 1 << 20


def class_path(site: Site) -> str:
    """The mesh's classes and Kafka's jars: for brokers and each of Kafka's tools."""
    kafka = site.jars.class_path("kafka")
    return f"{broker_jar(site.cache, kafka)}:{kafka}"


def class_archive(site: Site) -> ClassArchive:
    """The archive of that class path's classes."""
    return ClassArchive(site.cache / "archives", "kafka", class_path(site))


class KafkaBroker(Service):
    """Broker and controller of one cluster; super user `admin`."""

    def __init__(self, site: Site, cluster: str) -> None:
        super().__init__(site)
        self.cluster = cluster
        self.name = f"kafka-{cluster}"
        self.listeners = (self.name, f"{self.name}-controller")
        self._settings = site.layout.conf / f"{self.name}.properties"
        self._asking = Asking(lambda: site.login(cluster, "admin"))

    @property
    def protocol(self) -> str:
        """Kafka's name of its listener's protocol."""
        certificate = " + certificate" if self.site.transport is Transport.MTLS else ""
        return f"{protocol(self.site.tls)}{certificate}"

    def prepare(self) -> None:
        """Write the settings, and format the log folder, which gets its name when complete."""
        kafka = self.site.jars.class_path("kafka")
        compile_for_brokers(broker_jar(self.site.cache, kafka), kafka)
        write_atomically(self._settings, self._properties(self.data), mode=0o600)
        if not self.data.exists():
            self._format()

    def _format(self) -> None:
        """Format an empty log folder with the super user's SCRAM record in it."""
        work = Path(tempfile.mkdtemp(dir=self.data.parent, prefix=f".{self.name}."))
        try:
            settings = work / "server.properties"
            write_atomically(settings, self._properties(work / "log"), mode=0o600)
            arguments = work / "arguments"
            write_atomically(arguments, self._format_arguments(settings), mode=0o600)
            classes, options = class_path(self.site), self._options()
            tool = java("kafka.tools.StorageTool", 128, classes, options)
            done = subprocess.run(
                [*tool, f"@{arguments}"],
                check=False,
                capture_output=True,
                text=True,
                timeout=120,
                # the format writes the super user's SCRAM record
                umask=0o077,
            )
            if done.returncode:
                raise ServiceFailedError(
                    f"{self.name}: formatting failed: {done.stderr.strip()[-800:]}"
                )
            (work / "log").rename(self.data)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _format_arguments(self, settings: Path) -> str:
        # in a file, since every user can list the arguments of a process
        scram = f"SCRAM-SHA-512=[name=admin,password={self._password()}]"
        cluster_id = uuid4().hex[:22]
        lines = ("format", "--standalone", "--cluster-id", cluster_id)
        return "\n".join((*lines, "--config", str(settings), "--add-scram", scram)) + "\n"

    def command(self) -> Command:
        """Return the broker's process."""
        options = [*class_archive(self.site).options(), *self._options()]
        heap = self.site.settings.kafka_heap_mb
        argv = java("kafka.Kafka", heap, class_path(self.site), options, scratch=self.scratch)
        return Command((*argv, str(self._settings)), cwd=self.site.layout.run)

    def settle(self, pid: int) -> None:
        """Make the class archive that shortens the next start; one serves both clusters."""
        if self.cluster == CLUSTERS[0]:
            class_archive(self.site).make(pid, self.site.layout.run)

    def probe(self) -> None:
        """Describe the cluster as the super user; make the platform's principals and quotas."""
        login, settings = self.site.login(self.cluster, "admin"), self.site.settings
        password, registry = self.site.credentials.password, self.site.has_west_registry
        ensure_principals(login, principals_of(self.cluster, password, registry=registry))
        ensure_quotas(login, settings.quota_mib_s * _MIB, settings.quota_requests)

    def check(self) -> None:
        """Have broker and controller look at a request that changes nothing."""
        self._asking.require_answer(timeout_s=6)

    def _password(self) -> str:
        return self.site.credentials.password(self.cluster, "admin")

    def _options(self) -> list[str]:
        bounds = (f"-D{name}={most}" for name, most in JVM_BOUNDS.items())
        return [
            *large_jvm(self.site.settings),
            *MEMORY,
            *bounds,
            *log4j_options(self.site.layout.conf),
        ]

    def _properties(self, log: Path) -> str:
        client, controller = self.site.address(self.name), self.site.address(self.listeners[1])
        password = self._password()
        plain = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="admin" password="{password}" user_admin="{password}";'
        )
        return properties(
            {
                "process.roles": "broker,controller",
                "node.id": "1",
                "log.dirs": str(log),
                "controller.quorum.bootstrap.servers": controller,
                "controller.listener.names": "CONTROLLER",
                "listeners": f"CLIENT://{client},CONTROLLER://{controller}",
                "advertised.listeners": f"CLIENT://{client},CONTROLLER://{controller}",
                "inter.broker.listener.name": "CLIENT",
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
                # with a user of its own, no anonymous controller has to be a super user
                "sasl.mechanism.controller.protocol": "PLAIN",
                "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
                "listener.name.controller.plain.sasl.jaas.config": plain,
                "listener.name.client.scram-sha-512.sasl.jaas.config": jaas("admin", password),
                "super.users": "User:admin",
                # a login that was closed or given a new password loses its open sessions
                "connections.max.reauth.ms": str(self.site.settings.reauth_s * 1000),
            }
            | broker_settings(self.site.layout, self.site.transport)
            | SMALL_NODE
            | AUTHORIZER
            | POLICY
        )


MEMORY = (
    # 3 network threads for each listener and 10 request threads, each with a request
    f"-XX:MaxDirectMemorySize={_DIRECT_MB}m",
    # a thread keeps the direct buffer of its largest request for its lifetime without this
    "-Djdk.nio.maxCachedBufferSize=1048576",
)
"""Options of the JVM that bound its memory beside the heap.

The JVM does not exit when memory runs out: the request that asked for it fails instead;
`local_platform.supervision.service_runner` restarts a broker that does not answer any more.
"""
SMALL_NODE = {
    "auto.create.topics.enable": "false",
    # requests are read there: the more there are, the fewer of others' stand before one
    "num.network.threads": "8",
    # seven are domains' at most
    "num.io.threads": "12",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "8",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "8",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # after a kill -9 the old registration must expire first: 14 s by default, under 5 s so
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # a governor that dies must be replaced within seconds
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    # bytes of a request are allocated when they are announced: the largest record that is copied
    # (16 MiB and a header: `processors.controllers.flows.copy_settings`) fits with what is around
    "socket.request.max.bytes": str(17 * _MIB),
    # (`queued.max.request.bytes` is not set: who announces requests and sends none would hold that
    # pool, and nobody else's request be read)
    # the same before the login; SCRAM's messages are shorter, and a name's letters cost the thread
    # that reads it a part of its stack each
    "sasl.server.max.receive.size": "1024",
    "log.message.timestamp.before.max.ms": str(EARLIEST_MS),
    # a session of a fetch keeps what it names, 700 000 partitions of no topic too, until another
    # one takes its place; without, a Java consumer names its partitions in each fetch
    "max.incremental.fetch.session.cache.slots": "0",
    # fetches that are done are kept by each partition that they waited at until so many more are
    "fetch.purgatory.purge.interval.requests": "100",
    # far below 20 000 files, and above those of domains and those without a login together, which
    # have bounds of their own (see `jvm/BoundedConnections.scala`): a client that Kafka refuses, or
    # keeps waiting, may be the platform
    "max.connections": "6000",
    "max.connections.per.ip": "6000",
    # kept in memory for each partition of each group; Connect and Spark write none
    "offset.metadata.max.bytes": "128",
    "group.max.size": "500",
    "group.consumer.max.size": "500",
    "group.streams.max.size": "500",
    # a member of a group is kept, with what it sent, for so long after its connection ended
    "group.max.session.timeout.ms": "300000",
    # who was silent may send at once what its quota allows in so many seconds (11 by default), and
    # what stands behind it on the log waits until it is folded
    "quota.window.num": "2",
    # kept in memory for each producer and partition; a retry after an hour is none any more
    "producer.id.expiration.ms": "3600000",
    # one of them for topics of domains, see `jvm/BoundedCleaning.scala`
    "log.cleaner.threads": "2",
    # of both; the default of 128 MB would be a sixth of this heap
    "log.cleaner.dedupe.buffer.size": str(32 * _MIB),
}
