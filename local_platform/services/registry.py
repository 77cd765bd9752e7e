"""Schema registries: Apicurio, each with its storage in Kafka on its own cluster."""

import requests

from local_platform.errors import NotReadyError
from local_platform.files import private_folder
from local_platform.jars.java import EXIT_ON_OUT_OF_MEMORY, java, properties, small_jvm
from local_platform.jars.registry_folder import registry_folder
from local_platform.ports import HOST
from local_platform.services.base import Command, Service
from local_platform.site import Site
from mesh_events.files import write_atomically
from mesh_events.schema.size import MOST_VERSIONS

HEAP_MB = 256
USERS = {"writer": "sr-developer", "admin": "sr-admin"}


class Registry(Service):
    """Apicurio with basic auth to write; anyone on this machine may read a schema.

    To read is also to look a schema's id up by its text, as producers do, and to ask whether a
    schema is compatible: those are POST requests, which need a login everywhere else. What needs
    one as well is to list the texts of all schemas.

    name: `registry` is the mesh's own, on east; another one is its cluster's
    cluster: where it keeps what it has
    """

    def __init__(self, site: Site, name: str = "registry", cluster: str = "east") -> None:
        super().__init__(site)
        self.name, self._cluster = name, cluster
        self.after = (f"kafka-{cluster}",)
        self.listeners = (name,)
        self._conf = site.layout.conf / name
        # one that has a connection asks by it: connecting may take longer beside many others
        self._session = requests.Session()

    def prepare(self) -> None:
        """Write the settings, the users' passwords among them (Quarkus reads ./config)."""
        super().prepare()
        private_folder(self._conf / "config")
        path = self._conf / "config" / "application.properties"
        write_atomically(path, properties(self._settings()), mode=0o600)

    def command(self) -> Command:
        """Return the registry's process."""
        run = registry_folder(self.site.jars, self.site.cache) / "quarkus-run.jar"
        options = [*small_jvm(), EXIT_ON_OUT_OF_MEMORY]
        argv = java(f"-jar {run}", HEAP_MB, options=options, scratch=self.scratch)
        return Command(tuple(argv), cwd=self._conf)

    def probe(self) -> None:
        """Look schemas up through the Confluent API."""
        self._look_up(5)

    def check(self) -> None:
        """As the probe, with more patience."""
        self._look_up(12)

    def _look_up(self, timeout_s: float) -> None:
        base, user = self.site.registry_url(self.name), "writer"
        # requests with a login do not wait for others
        login = (user, self.site.credentials.password(self.name, user))
        try:
            answer = self._session.get(f"{base}/subjects", auth=login, timeout=timeout_s)
        except requests.RequestException as fault:
            raise NotReadyError(f"{self.name}: {type(fault).__name__}") from fault
        if answer.status_code != requests.codes.ok:
            raise NotReadyError(f"{self.name}: GET /subjects answered {answer.status_code}")

    def _settings(self) -> dict[str, str]:
        login = self.site.login(self._cluster, "registry").java()
        return (
            {
                "quarkus.http.host": HOST,
                "quarkus.http.port": str(self.site.port(self.name)),
                # nobody asks it: the probe looks up subjects
                "quarkus.management.host-enabled": "false",
                # nothing asks for a body before all of it is there: see `registry_jvm`
                "quarkus.http.handle-100-continue-automatically": "true",
                # a product's readers must be able to read what comes; a subject may say otherwise
                "apicurio.rules.global.compatibility": "BACKWARD",
                "apicurio.storage.kind": "kafkasql",
                "apicurio.kafkasql.bootstrap.servers": self.site.address(f"kafka-{self._cluster}"),
                # the default of 5 s is waited for at each start
                "apicurio.kafkasql.consumer.poll.timeout": "300",
            }
            | {f"apicurio.kafka.common.{name}": value for name, value in login.items()}
            | ACCESS
            | BOUNDS
            | self._users()
        )

    def _users(self) -> dict[str, str]:
        prefix = "quarkus.security.users.embedded"
        settings = {}
        for user, role in USERS.items():
            settings[f"{prefix}.users.{user}"] = self.site.credentials.password(self.name, user)
            settings[f"{prefix}.roles.{user}"] = role
        return settings


ACCESS = {
    "quarkus.http.auth.basic": "true",
    "quarkus.oidc.tenant-enabled": "false",
    "quarkus.security.users.embedded.enabled": "true",
    "quarkus.security.users.embedded.plain-text": "true",
    "apicurio.auth.role-based-authorization": "true",
    "apicurio.auth.authenticated-read-access.enabled": "true",
    "apicurio.auth.anonymous-read-access.enabled": "true",
}
_PERMISSION = "quarkus.http.auth.permission"
_V7 = "/apis/ccompat/v7"
_READ = ",".join(
    (
        f"{_V7}/schemas/ids/*",
        f"{_V7}/schemas/types",
        f"{_V7}/config/*",
        f"{_V7}/mode",
        *(f"/apis/registry/{version}/ids/*" for version in ("v2", "v3")),
        *(f"/apis/registry/{version}/groups/*" for version in ("v2", "v3")),
        *(f"/apis/registry/{version}/system/*" for version in ("v2", "v3")),
    )
)
"""Beside what `lookup` has below."""
BOUNDS = {
    # a schema has at most a million characters (`mesh_events.schema.size`); JSON escapes quotes
    "quarkus.http.limits.max-body-size": "2M",
    # as many as are compared (`mesh_events.schema.registry`)
    "apicurio.limits.config.max-versions-per-artifact": str(MOST_VERSIONS),
    # requests that are worked on together, by what one of 2 MB takes of the heap, and that wait
    "quarkus.thread-pool.max-threads": "8",
    "quarkus.thread-pool.queue-size": "500",
    # far above the bound of `registry_jvm`, which closes one where this one would refuse one
    "quarkus.http.limits.max-connections": "4000",
    # resets and streams of HTTP/2 have no bound among these
    "quarkus.http.http2": "false",
    "quarkus.http.idle-timeout": "30S",
    "quarkus.http.read-timeout": "20S",
    f"{_PERMISSION}.read.paths": _READ,
    f"{_PERMISSION}.read.methods": "GET,HEAD,OPTIONS",
    f"{_PERMISSION}.read.policy": "permit",
    # such as a list of all schemas, with their texts
    f"{_PERMISSION}.list.paths": "/*",
    f"{_PERMISSION}.list.methods": "GET,HEAD,OPTIONS",
    f"{_PERMISSION}.list.policy": "authenticated",
    # a path that is named above has no methods but those that are named for it
    f"{_PERMISSION}.write.paths": f"/*,{_READ}",
    f"{_PERMISSION}.write.methods": "POST,PUT,PATCH,DELETE",
    f"{_PERMISSION}.write.policy": "authenticated",
    # what may be registered there is a matter of roles, see `ACCESS`
    f"{_PERMISSION}.lookup.paths": f"{_V7}/subjects/*,{_V7}/compatibility/*",
    f"{_PERMISSION}.lookup.policy": "permit",
}
"""What a client without a login can make the registry do."""
