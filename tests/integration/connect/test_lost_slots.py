"""A capture whose replication slot PostgreSQL has given up says so at once."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from local_platform import Endpoints
from local_platform.services.base import Command
from local_platform.services.postgres import Postgres
from local_platform.site import Site
from processors.connect.rest import Connect
from projections.connectors.tables import pinned, slot_of
from self_service.cli.connect import debezium
from self_service.cli.connect.databases import Database
from tests.conftest import new_settings
from tests.faults.run.three_brokers import Process
from tests.integration.connect_owner import as_administrator, owner
from tests.integration.test_cli import Party, Sdm, sdm
from tests.kafka_client import eventually, fresh
from tests.mesh_fixtures import connect_worker

__all__ = ["owner", "sdm"]
pytestmark = pytest.mark.slow
LIFETIME_S = 300
DATABASE = "shop"
WAL_STATUS = "SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s"


class ForgetfulPostgres(Postgres):
    """It keeps one file of its log for a slot that nobody reads."""

    def command(self) -> Command:
        found = super().command()
        argv = [
            one.replace("slot_wal_keep_size=1GB", "slot_wal_keep_size=16MB") for one in found.argv
        ]
        assert argv != list(found.argv)
        return replace(found, argv=tuple(argv))


@pytest.fixture
def server() -> Iterator[dict[str, Any]]:
    """How psycopg connects to a database of a server of this test's own."""
    settings = new_settings()
    site = Site.of(settings)
    site.make_folders()
    service = ForgetfulPostgres(site, DATABASE)
    service.prepare()
    process = Process(service, LIFETIME_S)
    process.start()
    try:
        process.wait()
        yield {
            "host": "127.0.0.1",
            "port": service.port,
            "user": "postgres",
            "password": site.credentials.password("postgres", "postgres"),
            "dbname": DATABASE,
        }
    finally:
        process.kill()
        shutil.rmtree(settings.home)


def test_a_capture_whose_slot_was_given_up_names_it_and_the_way_out(
    sdm: Sdm, owner: Party, mesh: Endpoints, server: dict[str, Any]
) -> None:
    name = fresh("lost")
    connector = f"{owner.name}.{name}"
    slot = slot_of(connector)
    place = Database(server["host"], server["port"], server["user"], DATABASE, is_shared=False)
    config = {
        **pinned(connector, debezium.config(connector, ["users"], place)),
        "database.password": server["password"],
        # a login of the mesh's own has no offsets topic of a domain
        "exactly.once.support": "requested",
        **as_administrator(mesh),
    }
    connect = Connect(*connect_worker(mesh))

    def runs() -> bool:
        found = connect.deployed().get(name)
        return found is not None and found.runs

    with psycopg.connect(**server, autocommit=True) as database:
        database.execute("CREATE TABLE users (id int PRIMARY KEY)")
        database.execute("ALTER TABLE users REPLICA IDENTITY FULL")
        connect.put(name, config)
        try:
            eventually(runs, "it captures")
            streams = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
            eventually(lambda: database.execute(streams, (slot,)).fetchone() == (True,), "slot")
            connect.stop(name)
            eventually(lambda: database.execute(streams, (slot,)).fetchone() == (False,), "none")
            for _ in range(4):
                database.execute(
                    "SELECT pg_logical_emit_message(false, 'other', repeat('x', 20000000))"
                )
            database.execute("CHECKPOINT")
            assert database.execute(WAL_STATUS, (slot,)).fetchone() == ("lost",)
            connect.resume(name)
            reason = f"slot_lost: {slot}; PostgreSQL has given the replication slot up"
            eventually(lambda: reason in str(connect.deployed()[name].failure), "it is told")
        finally:
            connect.delete(name)
