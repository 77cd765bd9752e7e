"""A Spark Connect server in one JVM."""

import subprocess
import sys
from pathlib import Path

from local_platform.errors import NotReadyError
from local_platform.jars.class_archive import ClassArchive
from local_platform.jars.java import (
    COMPILE_LARGE_METHODS,
    avro_limits,
    java,
    large_jvm,
    log4j_options,
    packaged_runtime,
)
from local_platform.jars.lock import Jar, JarStore, joined
from local_platform.jars.scala_jars import compile_lookup, lookup_jar, pyspark_folder
from local_platform.ports import HOST
from local_platform.services.base import Command, Service
from local_platform.site import Site
from spark_streams.jvm import CLOSED_PORTS, CONNECT_SERVER

HEAP_MB = 1024
_PROBE_TIMEOUT_S = 90

# What Spark opens for itself when its own launcher starts it on Java 17 and later.
_OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util "
    "java.util.concurrent java.util.concurrent.atomic sun.nio.ch sun.nio.cs sun.security.action "
    "sun.util.calendar"
)


class SparkConnect(Service):
    """A server that has all functions; who cannot read the token file cannot use it."""

    name = "spark"
    listeners = ("spark",)
    main = CONNECT_SERVER

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._query: subprocess.Popen[str] | None = None

    @property
    def protocol(self) -> str:
        """Spark Connect speaks gRPC."""
        return "grpc"

    def prepare(self) -> None:
        """Make its folder, and the jar with the mesh's own classes."""
        super().prepare()
        spark = self._spark_path()
        compile_lookup(lookup_jar(self.site.cache, spark), spark)

    def command(self) -> Command:
        """Return the server's process; Spark's launcher fails on this Java, so it is by hand."""
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split()]
        settings = [f"-D{key}={value}" for key, value in self._settings().items()]
        options = [
            *large_jvm(self.site.settings),
            COMPILE_LARGE_METHODS,
            *self.class_archive.options(),
            *opened,
            *avro_limits(),
            *log4j_options(self.log4j_folder),
            *settings,
        ]
        argv = java(
            self.main,
            HEAP_MB,
            self._class_path(),
            options,
            scratch=self.scratch,
            runtime=self._runtime(),
        )
        environment = {
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": self._token(),
            "SPARK_LOCAL_HOSTNAME": HOST,
            "PYSPARK_PYTHON": sys.executable,
        }
        return Command(tuple(argv), cwd=self.data, environment=environment)

    def probe(self) -> None:
        """Run a first query through PySpark, in a process of its own.

        A client that hangs can then be ended, and PySpark's memory goes with it.
        """
        argv = [sys.executable, "-m", "local_platform.services.spark_query", self.remote]
        pipe = subprocess.PIPE
        with subprocess.Popen(argv, text=True, stdin=pipe, stdout=pipe, stderr=pipe) as query:
            self._query = query
            try:
                _, told = query.communicate(self._token(), _PROBE_TIMEOUT_S)
            except subprocess.TimeoutExpired as fault:
                query.kill()
                raise NotReadyError(
                    f"{self.name}: no first query within {_PROBE_TIMEOUT_S} s"
                ) from fault
            finally:
                self._query = None
        if query.returncode:
            last = told.strip().splitlines()[-1:] or ["no output"]
            raise NotReadyError(f"{self.name}: the first query failed: {last[0]}")

    def end_probe(self) -> None:
        """End the client that asks the first query: it would wait for a dead server."""
        query = self._query
        if query is not None:
            query.kill()

    @property
    def class_archive(self) -> ClassArchive:
        """The archive of its classes, that shortens a start."""
        return ClassArchive(self.site.cache / "archives", "spark", self._class_path())

    @property
    def log4j_folder(self) -> Path:
        """Where the settings of its log are."""
        return self.site.layout.conf

    def _runtime(self) -> Path:
        """The folder of the Java that it runs on."""
        return packaged_runtime()

    def _pyspark(self) -> Path:
        """The folder of PySpark's own jars."""
        return pyspark_folder()

    @property
    def remote(self) -> str:
        """Where it answers."""
        return self.site.spark_remote(self.listeners[0])

    def _token(self) -> str:
        return self.site.credentials.password(self.name, "token")

    def _settings(self) -> dict[str, str]:
        return {
            # every partition of a real-time query holds one slot for good; threads come on demand
            "spark.master": "local[512]",
            "spark.app.name": "sdm",
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.ui.enabled": "false",
            # the driver's ports for executors, of which there are none, are closed; until then
            # calls and blocks need a secret that Spark makes by itself
            "spark.extraListeners": CLOSED_PORTS,
            "spark.authenticate": "true",
            # a larger result would be fetched through the port for blocks (1 MiB by default)
            "spark.task.maxDirectResultSize": "128m",
            "spark.local.dir": str(self.scratch),
            "spark.sql.warehouse.dir": str(self.data / "warehouse"),
            "spark.sql.shuffle.partitions": "2",
            # a task without room for a record ends its own query, and not the server with all
            "spark.executor.killOnFatalError.depth": "0",
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self.port),
            # an idle session takes its running queries along, after 60 minutes by default
            "spark.connect.session.manager.defaultSessionTimeout": "-1",
            # ten minutes by default: one that is refused the right to write asks the broker for it
            # thousands of times a second until then (KAFKA-13668)
            "spark.kafka.producer.cache.timeout": "2s",
            "spark.kafka.producer.cache.evictorThreadRunInterval": "1s",
        }

    def _class_path(self) -> str:
        spark = self._spark_path()
        # it holds a class of Spark's as well
        return f"{lookup_jar(self.site.cache, spark)}:{spark}"

    def _spark_path(self) -> str:
        return class_path(self.site.jars, self._pyspark())


def class_path(store: JarStore, pyspark: Path | None = None) -> str:
    """What a server of Spark runs from: PySpark's own jars, the compiler included, and the store's.

    Patterns of statements are matched by re2j, which Kafka's servers have as well.

    Args:
        store: of the other jars.
        pyspark: a folder with the same jars as PySpark's own.

    Raises:
        ServiceFailedError: PySpark is not installed.
    """
    own = (pyspark or pyspark_folder()).glob("*.jar")
    return joined((*own, *(store.path(jar) for jar in spark_jars(store))))


def spark_jars(store: JarStore) -> list[Jar]:
    """The jars of the store that a server of Spark needs beside PySpark's own."""
    return [*store.of("spark"), store.one("re2j")]
