"""The platform through crashes and restarts, on servers of this module's own."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import psycopg
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from local_platform import Endpoints, LocalPlatform, PlatformSettings, Progress
from local_platform.process import Identity, marked
from local_platform.services import SERVERS
from local_platform.state import PlatformState, State
from mesh_events.references import resolve
from tests.conftest import new_settings, start

pytestmark = pytest.mark.platform

# The brokers and what needs no broker: enough for the supervisor's own life, and quick.
FEW = ("postgres", "kafka-east", "kafka-west")


@pytest.fixture(scope="module")
def own_settings() -> Iterator[PlatformSettings]:
    settings = new_settings()
    yield settings
    LocalPlatform(settings).down()
    shutil.rmtree(settings.home)


@pytest.fixture
def own(own_settings: PlatformSettings) -> LocalPlatform:
    """A running platform of few servers; tests may stop and kill them."""
    platform = LocalPlatform(own_settings, FEW)
    start(platform)
    return platform


@pytest.fixture
def whole(own_settings: PlatformSettings) -> LocalPlatform:
    """The same platform with all servers."""
    platform = LocalPlatform(own_settings, SERVERS)
    start(platform)
    return platform


def kafka(endpoints: Endpoints, cluster: str) -> dict[str, str]:
    found = endpoints.clusters[cluster]
    return {
        "bootstrap.servers": found.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": found.admin_user,
        "sasl.password": resolve(found.admin_password),
    }


def postgres(endpoints: Endpoints) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(
        host=endpoints.postgres_host,
        port=endpoints.postgres_port,
        user=endpoints.postgres_user,
        password=resolve(endpoints.postgres_password),
        dbname=endpoints.postgres_database,
        autocommit=True,
    )


def write_record(endpoints: Endpoints, topic: str, value: bytes) -> None:
    admin = AdminClient(kafka(endpoints, "east"))
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(10)
    producer = Producer(kafka(endpoints, "east") | {"acks": "all"})
    producer.produce(topic, value)
    assert producer.flush(10) == 0


def read_record(endpoints: Endpoints, topic: str) -> bytes | None:
    settings = {"group.id": topic, "auto.offset.reset": "earliest"}
    with contextlib.closing(Consumer(kafka(endpoints, "east") | settings)) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                value = message.value()
                return value if value is None else bytes(value)
    return None


def wait_until(holds: Callable[[], bool], what: str, timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.05)


def pids(platform: LocalPlatform) -> dict[str, int | None]:
    return {status.name: status.pid for status in platform.status()}


@pytest.mark.parametrize("service", SERVERS)
def test_a_killed_server_works_again(whole: LocalPlatform, service: str) -> None:
    """Ready means that the probe's real work succeeded with the new process."""
    before = whole.wait_ready(service)
    whole.kill(service, signal.SIGKILL)

    after = whole.wait_ready(service, after=before, timeout_s=90)

    assert after.pid != before.pid
    assert after.restarts == before.restarts + 1


def test_what_a_killed_server_held_is_still_there(
    whole: LocalPlatform, own_settings: PlatformSettings
) -> None:
    endpoints = Endpoints.load(own_settings.home)
    topic = f"kept-{time.time_ns()}"
    write_record(endpoints, topic, b"kept")
    with postgres(endpoints) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
        connection.execute("TRUNCATE kept")
        connection.execute("INSERT INTO kept VALUES (1)")
    user = f"{endpoints.registry_user}:{resolve(endpoints.registry_password)}"
    registry = SchemaRegistryClient({"url": endpoints.registry_url, "basic.auth.user.info": user})
    schema_id = registry.register_schema(f"{topic}-value", Schema('{"type": "string"}', "AVRO"))

    for service in ("kafka-east", "postgres", "registry"):
        before = whole.wait_ready(service)
        whole.kill(service, signal.SIGKILL)
        whole.wait_ready(service, after=before, timeout_s=90)

    assert read_record(endpoints, topic) == b"kept"
    with postgres(endpoints) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(1,)]
    anonymous = SchemaRegistryClient({"url": endpoints.registry_url})
    assert anonymous.get_latest_version(f"{topic}-value").schema_id == schema_id


def test_a_second_up_does_nothing_and_says_so(
    own: LocalPlatform, own_settings: PlatformSettings
) -> None:
    before, seen = pids(own), list[Progress]()

    endpoints = own.up(report=seen.append)

    assert [progress.stage for progress in seen] == ["running"]
    assert pids(own) == before
    assert endpoints == Endpoints.load(own_settings.home)


def test_data_and_passwords_survive_down_and_up(
    own: LocalPlatform, own_settings: PlatformSettings
) -> None:
    endpoints = Endpoints.load(own_settings.home)
    topic = f"survives-{time.time_ns()}"
    write_record(endpoints, topic, b"survives")
    with postgres(endpoints) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS survives (n int)")

    assert set(FEW) <= set(own.down())
    assert list(marked(own_settings.home)) == []
    assert all(status.state == State.STOPPED for status in own.status())
    assert own.up() == endpoints

    assert read_record(endpoints, topic) == b"survives"
    with postgres(endpoints) as connection:
        connection.execute("SELECT * FROM survives")


def test_down_of_what_does_not_run_stops_nothing(own: LocalPlatform) -> None:
    own.down()

    assert own.down() == []


def test_a_killed_supervisor_leaves_servers_that_up_replaces(
    own: LocalPlatform, own_settings: PlatformSettings
) -> None:
    orphans = kill_supervisor(own, own_settings)

    start(own)

    assert not any(orphan.alive for orphan in orphans)
    assert set(pids(own).values()).isdisjoint({orphan.pid for orphan in orphans})


def test_down_works_after_the_supervisor_was_killed(
    own: LocalPlatform, own_settings: PlatformSettings
) -> None:
    orphans = kill_supervisor(own, own_settings)

    assert set(own.down()) >= set(FEW)
    assert not any(orphan.alive for orphan in orphans)


def test_an_orphan_that_nobody_recorded_is_found(
    own: LocalPlatform, own_settings: PlatformSettings
) -> None:
    """A supervisor may be killed between a start and its record."""
    orphans = kill_supervisor(own, own_settings)
    (own_settings.home / "run" / "state.json").unlink()

    assert set(own.down()) >= set(FEW)
    assert not any(orphan.alive for orphan in orphans)


def kill_supervisor(own: LocalPlatform, settings: PlatformSettings) -> list[Identity]:
    state = PlatformState.load(settings.home / "run" / "state.json")
    assert state is not None
    os.kill(state.supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not state.supervisor.alive, "the supervisor has ended")
    orphans = [one.identity for one in own.status() if one.identity is not None]
    assert len(orphans) >= len(FEW)
    assert all(orphan.alive for orphan in orphans)
    return orphans


def test_fresh_starts_empty(own: LocalPlatform, own_settings: PlatformSettings) -> None:
    before = Endpoints.load(own_settings.home)
    password = resolve(before.clusters["east"].admin_password)
    write_record(before, "gone", b"gone")

    after = own.up(fresh=True)

    topics = AdminClient(kafka(after, "east")).list_topics(timeout=10).topics
    assert "gone" not in topics
    assert resolve(after.clusters["east"].admin_password) != password


def test_ctrl_c_while_starting_leaves_nothing_running(own_settings: PlatformSettings) -> None:
    LocalPlatform(own_settings).down()
    argv = [sys.executable, "-m", "local_platform", "up", "--services", ",".join(FEW)]
    environment = os.environ | own_settings.environment()
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as up:
        wait_until(lambda: bool(list(marked(own_settings.home))), "a first server runs")
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=60)
        assert up.returncode == 130

    assert list(marked(own_settings.home)) == []
    start(LocalPlatform(own_settings, FEW))


def test_no_password_is_on_any_command_line(
    whole: LocalPlatform, own_settings: PlatformSettings
) -> None:
    files = (own_settings.home / "secrets").rglob("*")
    passwords = {path.read_text() for path in files if path.is_file()}
    assert len(passwords) >= 9

    for status in whole.status():
        assert status.pid is not None
        line = " ".join(psutil.Process(status.pid).cmdline())
        assert not [password for password in passwords if password in line]


def test_nothing_listens_beyond_this_machine(whole: LocalPlatform) -> None:
    for status in whole.status():
        assert status.pid is not None
        for connection in psutil.Process(status.pid).net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                assert connection.laddr.ip in {"127.0.0.1", "::ffff:127.0.0.1"}, status.name


def test_two_who_start_at_once_start_one_mesh(own_settings: PlatformSettings) -> None:
    LocalPlatform(own_settings).down()
    argv = [sys.executable, "-m", "local_platform", "up", "--services", "postgres"]
    environment = os.environ | own_settings.environment()
    with contextlib.ExitStack() as both:
        started = [
            both.enter_context(
                subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(2)
        ]
        said = [one.communicate(timeout=120)[0] for one in started]
        assert [one.returncode for one in started] == [0, 0]

    assert sum("already running" in text for text in said) == 1
    assert len(list(marked(own_settings.home))) >= 1
    assert sum(name == "postgres" for name, _ in marked(own_settings.home)) <= 1


def test_ctrl_c_at_any_early_moment_leaves_nothing_running(own_settings: PlatformSettings) -> None:
    """The supervisor may be between its lock and its first state when the caller gives up."""
    LocalPlatform(own_settings).down()
    argv = [sys.executable, "-m", "local_platform", "up", "--services", "postgres"]
    environment = os.environ | own_settings.environment()
    (own_settings.home / "run" / "state.json").unlink(missing_ok=True)
    for delay in (0.3, 0.5, 0.6, 0.7, 0.8, 1.0):
        with subprocess.Popen(
            argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as up:
            with contextlib.suppress(subprocess.TimeoutExpired):
                up.wait(delay)
            up.send_signal(signal.SIGINT)
            code = up.wait(60)
        if code == 130:  # otherwise the start was complete before the signal came
            wait_until(lambda: not list(marked(own_settings.home)), f"all stopped after {delay}")
        LocalPlatform(own_settings).down()
