"""What of the mesh runs inside Kafka's clients of Spark and Connect: consumers know topics by id.

What lives here: the Scala sources of the check, and of what has two of Kafka's classes ask for it.
What does not: how they are compiled and put on a class path (`local_platform.jars.scala_jars`),
which patch of Spark or Connect calls this one, and who gives a consumer its ids
(`mesh_events.kafka.connection.TOPIC_IDS`).
"""

from pathlib import Path

from processors.connect.jvm import PATCHED_CLASS

SOURCES = (
    *(Path(__file__).parent / name for name in ("PatchMetadata.scala", "TopicIds.scala")),
    PATCHED_CLASS,
)
