"""The schema registry: Apicurio, its storage in Kafka on the east cluster."""

import requests

from local_platform.errors import NotReadyError
from local_platform.files import private_folder
from local_platform.ports import HOST
from local_platform.services.base import Command, Service
from local_platform.services.java import java, properties, small_jvm
from local_platform.site import Site
from local_platform.unpack import registry_folder
from mesh_events.files import write_atomically

HEAP_MB = 192
USERS = {"writer": "sr-developer", "admin": "sr-admin"}


class Registry(Service):
    """Apicurio with basic auth to write; anyone on this machine may read."""

    name = "registry"
    after = ("kafka-east",)
    listeners = ("registry", "registry-health")

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._conf = site.layout.conf / "registry"

    def prepare(self) -> None:
        """Write the settings, the users' passwords among them (Quarkus reads ./config)."""
        super().prepare()
        private_folder(self._conf / "config")
        path = self._conf / "config" / "application.properties"
        write_atomically(path, properties(self._settings()), mode=0o600)

    def command(self) -> Command:
        """Return the registry's process."""
        run = registry_folder(self.site.jars, self.site.cache) / "quarkus-run.jar"
        argv = java(f"-jar {run}", HEAP_MB, options=small_jvm())
        return Command(tuple(argv), cwd=self._conf)

    def probe(self) -> None:
        """Look schemas up through the Confluent API, without a user."""
        base = f"http://{self.site.address('registry')}/apis/ccompat/v7"
        try:
            answer = requests.get(f"{base}/subjects", timeout=5)
        except requests.RequestException as fault:
            raise NotReadyError(f"registry: {type(fault).__name__}") from fault
        if answer.status_code != requests.codes.ok:
            raise NotReadyError(f"registry: GET /subjects answered {answer.status_code}")

    def _settings(self) -> dict[str, str]:
        login = self.site.login("east", "registry").java()
        return (
            {
                "quarkus.http.host": HOST,
                "quarkus.http.port": str(self.site.port("registry")),
                "quarkus.management.host": HOST,
                "quarkus.management.port": str(self.site.port("registry-health")),
                # a product's readers must be able to read what comes; a subject may say otherwise
                "apicurio.rules.global.compatibility": "BACKWARD",
                "apicurio.storage.kind": "kafkasql",
                "apicurio.kafkasql.bootstrap.servers": self.site.address("kafka-east"),
                # the default of 5 s is waited for at each start
                "apicurio.kafkasql.consumer.poll.timeout": "300",
            }
            | {f"apicurio.kafka.common.{name}": value for name, value in login.items()}
            | ACCESS
            | self._users()
        )

    def _users(self) -> dict[str, str]:
        prefix = "quarkus.security.users.embedded"
        settings = {}
        for user, role in USERS.items():
            settings[f"{prefix}.users.{user}"] = self.site.credentials.password("registry", user)
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
