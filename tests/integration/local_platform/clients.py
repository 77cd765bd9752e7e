"""What a program does with a running platform: log in, write, read, ask, run as an account."""

import contextlib
import subprocess
import time
from collections.abc import Callable, Sequence

import psycopg
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from local_platform import Endpoints


def kafka(endpoints: Endpoints, cluster: str) -> dict[str, str]:
    return endpoints.administration(cluster).librdkafka()


def postgres(endpoints: Endpoints) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(**endpoints.postgres_login(), autocommit=True)


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
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                value = message.value()
                return value if value is None else bytes(value)
    return None


def run_as(
    user: int, group: int, groups: Sequence[int], *argv: str
) -> subprocess.CompletedProcess[str]:
    """Run a program as another account of the operating system; only root can."""
    return subprocess.run(
        argv,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/",
        user=user,
        group=group,
        extra_groups=groups,
    )


def wait_until(holds: Callable[[], bool], what: str, timeout_s: float = 120) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.05)
