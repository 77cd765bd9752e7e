"""What a session is told of a table, so that its executors can look rows up in it."""

from collections.abc import Mapping

from mesh_events.kafka.connection import TOPIC_IDS, Connection, known_topics
from spark_streams.jvm import CONFIG
from spark_streams.sql.running.frame import Topic


def settings(
    name: str, topic: str, topic_id: str, table: Topic, login: Connection
) -> Mapping[str, str]:
    """Settings of the session, from which `mesh.TableLookup` opens the table.

    Args:
        name: of the table; another one for each incarnation of a statement, which then reads anew.
        topic: where its rows are.
        topic_id: Kafka's id of that.
        table: what its values look like.
        login: who reads them; the setting holds its password, which Spark does not show.
    """
    kafka = {f"kafka.{option}": value for option, value in login.java().items()}
    told = {
        **kafka,
        "kafka.enable.auto.commit": "false",
        "kafka.isolation.level": "read_committed",
        # a topic that was cut off or made anew is not read as if nothing had happened
        "kafka.auto.offset.reset": "none",
        # partitions that are added are seen by this
        "kafka.metadata.max.age.ms": "5000",
        f"kafka.{TOPIC_IDS}": known_topics({topic: topic_id}),
        "topic": topic,
        "keys": ",".join(map(str, table.key_writers)),
        "key": table.key or '"null"',
        "change": str(table.shape.is_change).lower(),
        "reader": table.shape.row_reader,
        **{f"schema.{number}": schema for number, schema in table.writers.items()},
    }
    return {CONFIG + name: "".join(f"{key}={_escaped(text)}\n" for key, text in told.items())}


def _escaped(text: str) -> str:
    """A value as a properties file has it."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return "\\" + escaped if escaped.startswith(" ") else escaped
