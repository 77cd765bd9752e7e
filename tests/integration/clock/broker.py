"""A Kafka broker with a clock that a test sets.

`SystemTime.scala` is compiled with the compiler that PySpark brings, and stands before Kafka's own
jars on the class path.
"""

import struct
from hashlib import sha256
from pathlib import Path

from local_platform.jars.java import java, properties
from local_platform.jars.lock import joined
from local_platform.jars.scala_jars import compile_once, pyspark_jars
from local_platform.ports import HOST
from local_platform.services.base import Command
from local_platform.services.kafka import KafkaBroker, class_path
from local_platform.site import Site

SOURCE = Path(__file__).with_name("SystemTime.scala")
_FIRST = 1
_MS = struct.Struct(">q")


class BrokerClock:
    """How far a broker's clock is off: a file that the broker maps into its memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.write_bytes(_MS.pack(0))

    def set(self, off_ms: int) -> None:
        """Let the clock be so many ms ahead of the machine's from now on; below 0: behind."""
        # in place: the broker has this file mapped
        with self.path.open("r+b") as opened:
            opened.write(_MS.pack(off_ms))


class ClockedBroker(KafkaBroker):
    """A broker of the cluster east with its own clock; the first one is also the controller.

    Args:
        site: the mesh.
        number: 1 for the controller.
        count: brokers of the cluster.
    """

    def __init__(self, site: Site, number: int, count: int) -> None:
        super().__init__(site, "east")
        self.number, self._count = number, count
        if number > _FIRST:
            self.name = f"kafka-east-{number}"
        self._settings = site.layout.conf / f"{self.name}.properties"
        self.clock = BrokerClock(site.layout.run / f"{self.name}.clock")
        self._jar = site.layout.run / "system-time.jar"

    def prepare(self) -> None:
        """Compile the clock, too."""
        compiler = joined(pyspark_jars("scala-*"))
        compile_once(self._jar, f"{class_path(self.site)}:{compiler}", (SOURCE,))
        super().prepare()

    def command(self) -> Command:
        """Return the broker's process."""
        options = [*self._options(), f"-Dmesh.clock.offset={self.clock.path}"]
        path = f"{self._jar}:{class_path(self.site)}"
        heap = self.site.settings.kafka_heap_mb
        argv = java("kafka.Kafka", heap, path, options, scratch=self.scratch)
        return Command((*argv, str(self._settings)), cwd=self.site.layout.run)

    def _properties(self, log: Path) -> str:
        more = {
            "default.replication.factor": str(self._count),
            "offsets.topic.replication.factor": str(self._count),
        }
        if self.number > _FIRST:
            client = f"CLIENT://{HOST}:{self.site.port('kafka-east') + 2 * (self.number - 1)}"
            more |= {
                "process.roles": "broker",
                "node.id": str(self.number),
                "listeners": client,
                "advertised.listeners": client,
            }
        # of two lines with one name Kafka takes the last
        return KafkaBroker(self.site, self.cluster)._properties(log) + properties(more)

    def _format_arguments(self, settings: Path) -> str:
        lines = super()._format_arguments(settings).splitlines()
        at = lines.index("--cluster-id") + 1
        shared = self.site.credentials.password("east", "cluster-id")
        # a password may begin with "-", which Kafka's tool takes for an option
        lines[at] = sha256(shared.encode()).hexdigest()[:22]
        if self.number > _FIRST:
            lines.remove("--standalone")
        return "\n".join(lines) + "\n"
