"""The Kafka Connect worker of one domain: Debezium, MirrorMaker 2, Avro by default.

Its own topics lie on the cluster east.
"""

import threading
import time
from pathlib import Path
from typing import Any

import requests

from local_platform.domain_servers import CONNECT
from local_platform.endpoints import CONNECT_GROUP, Endpoints
from local_platform.errors import NotReadyError
from local_platform.files import private_folder
from local_platform.jars.class_archive import ClassArchive
from local_platform.jars.java import (
    EXIT_ON_OUT_OF_MEMORY,
    avro_limits,
    java,
    log4j_options,
    properties,
    small_jvm,
)
from local_platform.jars.plugins import connect_plugins
from local_platform.jars.scala_jars import compile_transformations, transformations_jar
from local_platform.services.base import Command, Service
from local_platform.site import Site
from mesh_events.files import write_atomically
from mesh_events.kafka.connection import LOGIN_MODULE, TOPIC_IDS
from mesh_events.references import resolve
from processors.connect.jvm import REST_EXTENSION
from processors.connect.principals import group_of

HEAP_MB = 256
IN_UTC = "-Duser.timezone=UTC"
"""Java makes texts of times in a zone, and drivers give it to databases: in none of a host's."""
DEBEZIUM = "io.debezium.connector.postgresql.PostgresConnector"
_REST_AUTH = "org.apache.kafka.connect.rest.basic.auth.extension"


class Connect(Service):
    """One distributed worker with exactly-once sources; its REST API asks for a user.

    It is started when the domain first needs it, and stopped when it has had no connector to run
    for `connect_idle_s`. What the domain's records and databases do to a worker's memory and
    processors harms nobody else's.
    """

    after = ("kafka-east",)
    on_demand = True
    stop_timeout = 15.0
    # one that fills its memory again and again leaves the processors to others
    longest_pause_s = 60.0

    def __init__(self, site: Site, domain: str) -> None:
        super().__init__(site)
        self.name, self.user = f"{CONNECT.prefix}{domain}", domain
        self.listeners = (self.name,)
        self._domain, self._conf = domain, site.layout.conf
        # one that has a connection asks by it: connecting may take longer beside many others
        self._session = requests.Session()
        self._guard = threading.Lock()
        # when it was last needed; None while it is being started
        self._needed: float | None = None
        self._asked = self._last_asked()

    @property
    def _settings(self) -> Path:
        return self._conf / f"{self.name}.properties"

    @property
    def _jaas(self) -> Path:
        return self._conf / f"{self.name}.jaas"

    @property
    def url(self) -> str:
        """Base address of its REST API."""
        return f"http://{self.site.address(self.name)}"

    def password_reference(self) -> str:
        """A reference to the password of its REST API's one user."""
        return self.site.credentials.reference("connect", self.user)

    @property
    def is_idle(self) -> bool:
        """Whether it ran no connector, and nobody asked for it, for `connect_idle_s`."""
        with self._guard:
            if self._needed is None or self._last_asked() != self._asked:
                return False
            return time.monotonic() - self._needed >= self.site.settings.connect_idle_s

    def _last_asked(self) -> int:
        try:
            return self.site.layout.asked(self.name).stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def _is_needed(self) -> None:
        with self._guard:
            self._needed, self._asked = time.monotonic(), self._last_asked()

    def prepare(self) -> None:
        """Write the worker's settings, the REST users and the folder of connectors' secrets."""
        super().prepare()
        kafka = self.site.jars.class_path("kafka")
        compile_transformations(transformations_jar(self.site.cache, kafka), kafka)
        self._write_rest_users()
        hand_secrets_to_connectors(self.site.endpoints())
        write_atomically(self._settings, properties(self._worker()), mode=0o600)

    def command(self) -> Command:
        """Return the worker's process."""
        with self._guard:
            self._needed = None
        options = [
            *small_jvm(),
            *self._archive().options(),
            *avro_limits(),
            # without the thread that asked for memory a worker is none: the topics of configs and
            # positions are read by one thread each
            EXIT_ON_OUT_OF_MEMORY,
            IN_UTC,
            *log4j_options(self.site.layout.conf),
            f"-Dorg.apache.kafka.allowed.login.modules={LOGIN_MODULE}",
            f"-Djava.security.auth.login.config={self._jaas}",
        ]
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        argv = java(main, HEAP_MB, self._class_path(), options, scratch=self.scratch)
        return Command((*argv, str(self._settings)), cwd=self.data)

    def settle(self, pid: int) -> None:
        """Make the class archive that shortens the next start."""
        self._archive().make(pid, self.data)

    def _archive(self) -> ClassArchive:
        return ClassArchive(self.site.cache / "archives", "connect", self._class_path())

    def _class_path(self) -> str:
        """Kafka's own jars, and the mesh's plugins."""
        kafka = self.site.jars.class_path("kafka")
        return f"{transformations_jar(self.site.cache, kafka)}:{kafka}"

    def probe(self) -> None:
        """Ask the worker for its plugins; Debezium must be among them."""
        plugins = self._ask("connector-plugins", 5)
        if DEBEZIUM not in {plugin["class"] for plugin in plugins}:
            raise NotReadyError(f"{self.name}: the Debezium plugin is not loaded")
        self._is_needed()

    def check(self) -> None:
        """Ask the worker what it runs."""
        found = self._ask("connectors?expand=status", 12)
        states = [one["status"]["connector"]["state"] for one in found.values()]
        if any(state != "STOPPED" for state in states) or self._last_asked() != self._asked:
            self._is_needed()

    def _ask(self, path: str, timeout_s: float) -> Any:
        user = (self.user, self.site.credentials.password("connect", self.user))
        try:
            answer = self._session.get(f"{self.url}/{path}", auth=user, timeout=timeout_s)
        except requests.RequestException as fault:
            raise NotReadyError(f"{self.name}: {type(fault).__name__}") from fault
        if answer.status_code != requests.codes.ok:
            raise NotReadyError(f"{self.name}: GET /{path} answered {answer.status_code}")
        return answer.json()

    def _write_rest_users(self) -> None:
        # whoever took its port meanwhile was told the one before
        self.site.credentials.renew("connect", self.user)
        users = self._conf / f"{self.name}.users"
        password = self.site.credentials.password("connect", self.user)
        write_atomically(users, f"{self.user}: {password}\n", mode=0o600)
        login = f'{_REST_AUTH}.PropertyFileLoginModule required file="{users}";'
        write_atomically(self._jaas, f"KafkaConnect {{\n  {login}\n}};\n", mode=0o600)

    def _worker(self) -> dict[str, str]:
        plugins = connect_plugins(self.site.jars, self.site.cache)
        return (
            {
                "listeners": self.url,
                "plugin.path": str(plugins),
            }
            | self._clients()
            | self._secret_providers()
            | self._avro("key")
            | self._avro("value")
            | WORKER
            | self._own_topics()
        )

    def _own_topics(self) -> dict[str, str]:
        return {
            "group.id": group_of(self._domain),
            "config.storage.topic": f"connect-configs.{self._domain}",
            # the offsets of its exactly-once sources are in connect-offsets.<domain>
            "offset.storage.topic": f"connect-worker-offsets.{self._domain}",
            "offset.storage.partitions": "1",
            "status.storage.topic": f"connect-status.{self._domain}",
            "status.storage.partitions": "1",
        }

    def _clients(self) -> dict[str, str]:
        """How the worker's own clients log in; those of connectors begin with the same."""
        login = self.site.login("east", "connect").java()
        return {
            f"{client}{key}": value
            for client in ("", "producer.", "consumer.", "admin.")
            for key, value in login.items()
        }

    def _secret_providers(self) -> dict[str, str]:
        """Let connectors name secrets, in one folder only, so that no config holds one."""
        folder = str(self.site.endpoints().connect_secrets)
        package = "org.apache.kafka.common.config.provider"
        return {
            "config.providers": "dir",
            "config.providers.dir.class": f"{package}.DirectoryConfigProvider",
            "config.providers.dir.param.allowed.paths": folder,
        }

    def _avro(self, side: str) -> dict[str, str]:
        """Return the default converter: Avro in the Confluent wire format, registered."""
        prefix = f"{side}.converter"
        registry = f"{prefix}.apicurio.registry"
        return {
            prefix: "io.apicurio.registry.utils.converter.AvroConverter",
            f"{registry}.url": f"http://{self.site.address('registry')}/apis/registry/v2",
            f"{registry}.auto-register": "true",
            f"{registry}.find-latest": "true",
            f"{registry}.as-confluent": "true",
            f"{registry}.use-id": "contentId",
            f"{registry}.headers.enabled": "false",
            f"{prefix}.apicurio.auth.username": "writer",
            f"{prefix}.apicurio.auth.password": self.site.credentials.password(
                "registry", "writer"
            ),
        }


def hand_secrets_to_connectors(endpoints: Endpoints) -> None:
    """Copy the example database's password into the only folder that connectors may read."""
    folder = private_folder(endpoints.connect_secrets)
    password = resolve(endpoints.postgres_password)
    write_atomically(folder / "postgres-postgres", password, mode=0o600)


OVERRIDES = (
    "bootstrap.servers",
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    # and what only tunes
    "batch.size",
    "compression.type",
    "linger.ms",
    "max.request.size",
    # and what keeps a sink from records that do not count, and from a topic that was made anew
    "isolation.level",
    TOPIC_IDS,
)
"""What a connector may set of its own Kafka clients: nothing that loads a class or a file."""

# with the topics and the group of workers that all domains share, as in the containers
WORKER = {
    "group.id": CONNECT_GROUP,
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "4",
    # also of connectors' own topics of positions; a position is some hundred bytes
    "offset.storage.max.message.bytes": "65536",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "2",
    "exactly.once.source.support": "enabled",
    # a connector works with a login of its own, at its domain's cluster
    "connector.client.config.override.policy": "Allowlist",
    "connector.client.config.override.allowlist": ",".join(OVERRIDES),
    # scanning every class took 18 s and 330 MB more than reading service manifests
    "plugin.discovery": "service_load",
    "topic.creation.enable": "true",
    # Kafka's asks for no login on the paths between workers, and there is one worker
    "rest.extension.classes": f"{_REST_AUTH}.BasicAuthSecurityRestExtension,{REST_EXTENSION}",
    # the only worker of its group need not wait for others
    "scheduled.rebalance.max.delay.ms": "0",
    "offset.flush.interval.ms": "5000",
    # what a sink's consumer has of a broker's answer, compressed; 50 MiB by default
    "consumer.fetch.max.bytes": str(8 * 1024 * 1024),
    # how soon a sink reads partitions that were added; five minutes by default
    "consumer.metadata.max.age.ms": "15000",
}
