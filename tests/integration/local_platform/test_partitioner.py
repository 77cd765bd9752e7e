"""A key has one partition, whichever client writes it."""

import subprocess
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from local_platform import Endpoints, PlatformSettings
from local_platform.jars.java import java
from local_platform.services.kafka import class_path
from local_platform.site import Site
from mesh_events.kafka.connection import Connection
from self_service.cli.domain.credentials import Form, client_settings, properties, read_properties
from self_service.cli.generate.exact_writer import ExactWriter
from self_service.cli.topic.producing import write

PARTITIONS = 7
KEYS = [f"S-{number}" for number in range(40)]
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"


def test_a_key_is_on_one_partition_whether_java_or_the_mesh_writes_it(
    platform: Endpoints, settings: PlatformSettings, tmp_path: Path
) -> None:
    login, topic = platform.administration("east"), f"partitioner-{time.time_ns()}"
    admin = AdminClient(login.config())
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(10)
    pairs = [(key.encode(), b"") for key in KEYS]

    from_java(login, settings, topic, tmp_path)
    write(login, topic, ((key, b"produce") for key, _ in pairs))
    writer = ExactWriter(login, topic, topic, 0)
    for key, _ in pairs:
        writer.write(key, b"exact")
    writer.commit()
    from_a_file(login, topic, tmp_path)

    found = partitions(login, topic, 4 * len(KEYS))
    assert set(found) == {"java", "produce", "exact", "file"}
    assert found["produce"] == found["exact"] == found["file"] == found["java"]
    # a choice that puts all on one partition would agree as well
    assert len(set(found["java"].values())) > 1


def from_java(login: Connection, settings: PlatformSettings, topic: str, folder: Path) -> None:
    config = folder / "java.properties"
    config.write_text(properties(login.java()))
    argv = [
        *java(CONSOLE_PRODUCER, 256, class_path(Site.of(settings))),
        *("--bootstrap-server", login.bootstrap_servers, "--topic", topic),
        *("--command-config", str(config)),
        *("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
    ]
    lines = "".join(f"{key}:java\n" for key in KEYS)
    done = subprocess.run(
        argv, input=lines, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def from_a_file(login: Connection, topic: str, folder: Path) -> None:
    """As somebody's own program with the file that `sdm access credentials` writes."""
    path = folder / "client.properties"
    path.write_text(properties(client_settings(login, Form.LIBRDKAFKA)))
    consuming = {"group.id", "auto.offset.reset"}
    given = {name: value for name, value in read_properties(path).items() if name not in consuming}
    producer = Producer({**given, "log_level": 0})
    for key in KEYS:
        producer.produce(topic, b"file", key)
    assert producer.flush(30) == 0


def partitions(login: Connection, topic: str, count: int) -> dict[str, dict[str, int]]:
    """Writer -> key -> partition, of `count` records."""
    consumer = Consumer(login.config(group_id=topic, auto_offset_reset="earliest"))
    consumer.assign([TopicPartition(topic, one, 0) for one in range(PARTITIONS)])
    found: dict[str, dict[str, int]] = {}
    deadline = time.monotonic() + 60
    read = 0
    while read < count:
        assert time.monotonic() < deadline, f"{read} of {count} records were read"
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            read += 1
            key, value = message.key(), message.value()
            assert isinstance(key, bytes)
            assert isinstance(value, bytes)
            partition = found.setdefault(value.decode(), {}).setdefault(
                key.decode(), message.partition()
            )
            assert partition == message.partition()
    consumer.close()
    return found
