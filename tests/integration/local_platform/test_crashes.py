"""Every server through a crash, on one mesh of this module's own."""

import shutil
import signal
import time
from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from local_platform import Endpoints, LocalPlatform
from local_platform.services import SERVERS
from mesh_events.references import resolve
from tests.conftest import new_settings, start
from tests.integration.local_platform.clients import postgres, read_record, write_record

pytestmark = pytest.mark.platform


@pytest.fixture(scope="module")
def endpoints(whole: LocalPlatform) -> Endpoints:
    return start(whole)


@pytest.fixture(scope="module")
def whole() -> Iterator[LocalPlatform]:
    """All servers; every test leaves them ready."""
    settings = new_settings()
    platform = LocalPlatform(settings, SERVERS)
    yield platform
    platform.down()
    shutil.rmtree(settings.home)


@pytest.mark.sample(2)
@pytest.mark.parametrize("service", SERVERS)
@pytest.mark.usefixtures("endpoints")
def test_a_killed_server_works_again(whole: LocalPlatform, service: str) -> None:
    """Ready means that the probe's real work succeeded with the new process."""
    before = whole.wait_ready(service)
    whole.kill(service, signal.SIGKILL)

    after = whole.wait_ready(service, after=before, timeout_s=240)

    assert after.pid != before.pid
    assert after.restarts == before.restarts + 1


def test_what_killed_servers_held_is_still_there(
    whole: LocalPlatform, endpoints: Endpoints
) -> None:
    topic = f"kept-{time.time_ns()}"
    write_record(endpoints, topic, b"kept")
    with postgres(endpoints) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
        connection.execute("TRUNCATE kept")
        connection.execute("INSERT INTO kept VALUES (1)")
    user = f"{endpoints.registry_user}:{resolve(endpoints.registry_password)}"
    registry = SchemaRegistryClient(
        {"url": endpoints.registry_url, "basic.auth.user.info": user, "timeout": 10}
    )
    schema_id = registry.register_schema(f"{topic}-value", Schema('{"type": "string"}', "AVRO"))

    killed = ("kafka-east", "postgres", "registry")
    before = {service: whole.wait_ready(service) for service in killed}
    for service in killed:
        whole.kill(service, signal.SIGKILL)
    for service in killed:
        whole.wait_ready(service, after=before[service], timeout_s=240)

    assert read_record(endpoints, topic) == b"kept"
    with postgres(endpoints) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(1,)]
    anonymous = SchemaRegistryClient({"url": endpoints.registry_url, "timeout": 10})
    assert anonymous.get_latest_version(f"{topic}-value").schema_id == schema_id
