"""A PostgreSQL server of a test's own, and connectors that capture it."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from local_platform import Endpoints
from local_platform.services.postgres import Postgres
from local_platform.site import Site
from processors.connect.rest import Connect
from projections.connectors.tables import pinned, slot_of
from self_service.cli.connect import debezium
from self_service.cli.connect.databases import Database
from tests.conftest import new_settings
from tests.faults.run.three_brokers import Process
from tests.integration.connect_owner import as_administrator
from tests.kafka_client import eventually, fresh
from tests.mesh_fixtures import connect_worker

_LIFETIME_S = 900
"""Longer than a test waits for all that it waits for."""
_DATABASE = "shop"
_ACTIVE = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"


@dataclass(frozen=True)
class OwnPostgres:
    """The server, which a test may stop, change and start again."""

    service: Postgres
    process: Process
    password: str

    def start(self) -> None:
        self.process.start()
        self.process.wait()

    def stop(self) -> None:
        """End it as an administrator does, so that its folder may be copied and used again."""
        lock = self.data / "postmaster.pid"
        os.kill(int(lock.read_text().split()[0]), signal.SIGINT)
        eventually(lambda: not lock.exists(), "PostgreSQL has stopped")
        self.process.kill()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """It takes connections meanwhile, and answers none of them."""
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(postmaster, signal.SIGCONT)

    @property
    def data(self) -> Path:
        return self.service.data

    @contextmanager
    def database(self) -> Iterator[Any]:
        """A connection of the superuser's."""
        login = {"host": "127.0.0.1", "port": self.service.port, "dbname": _DATABASE}
        with psycopg.connect(
            **login, user="postgres", password=self.password, autocommit=True
        ) as connection:
            yield connection

    def config(self, connector: str, table: str, **more: str) -> dict[str, str]:
        """What captures a table, as a controller has it; logins of the mesh's own write."""
        login = {"user": "postgres", "password": self.password} | more
        place = Database("127.0.0.1", self.service.port, login["user"], _DATABASE, is_shared=False)
        return {
            **debezium.config(connector, [table], place),
            "database.password": login["password"],
            # a login of the mesh's own has no offsets topic of a domain
            "exactly.once.support": "requested",
        }


@pytest.fixture
def own_postgres() -> Iterator[OwnPostgres]:
    settings = new_settings()
    site = Site.of(settings)
    site.make_folders()
    service = Postgres(site, _DATABASE)
    service.prepare()
    process = Process(service, _LIFETIME_S)
    server = OwnPostgres(service, process, site.credentials.password("postgres", "postgres"))
    try:
        server.start()
        yield server
    finally:
        process.kill()
        shutil.rmtree(settings.home)


@dataclass(frozen=True)
class Capture:
    """A connector that Connect has, and the log does not."""

    mesh: Endpoints
    name: str
    slot: str

    @property
    def connect(self) -> Connect:
        """The worker, which is started again where it has stopped for want of connectors."""
        return Connect(*connect_worker(self.mesh))

    def wait_active(self, database: Any, active: bool = True) -> None:
        """Wait until it streams, or until it has stopped."""

        def found() -> bool:
            return bool(database.execute(_ACTIVE, (self.slot,)).fetchone() == (active,))

        eventually(found, f"{self.slot} is {active}")

    def fails(self, reason: str) -> None:
        """Wait until it has failed for a reason."""

        def has_failed() -> bool:
            found = self.connect.deployed().get(self.name)
            return found is not None and reason in str(found.failure)

        eventually(has_failed, f"it fails: {reason}")


@contextmanager
def capturing(
    mesh: Endpoints, server: OwnPostgres, domain: str, table: str, **more: str
) -> Iterator[Capture]:
    """Has Connect capture a table of the server."""
    name = fresh("own")
    connector = f"{domain}.{name}"
    found = pinned(connector, server.config(connector, table, **more)) | as_administrator(mesh)
    capture = Capture(mesh, name, slot_of(connector))
    capture.connect.put(name, found)
    try:
        yield capture
    finally:
        capture.connect.delete(name)
