"""Fetch what the public images lack: `python -m local_platform.containers.jars FOLDER`.

Leaves Connect's plugins in FOLDER/plugins and Spark's Kafka and Avro jars in FOLDER/spark, all
pinned by the same lock file as the local platform's; beside them the mesh's own, compiled by
PySpark's compiler as the local platform does it: the functions of streaming SQL, Connect's
transformations, and in FOLDER/kafka the brokers' own classes.
"""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

from local_platform.jars.fetch import Fetcher
from local_platform.jars.lock import JarStore, joined, read_lock
from local_platform.jars.plugins import connect_plugins
from local_platform.jars.scala_jars import (
    LOOKUP_SOURCES,
    compile_for_brokers,
    compile_once,
    compile_transformations,
)
from local_platform.services.spark import class_path, spark_jars
from local_platform.settings import PlatformSettings

LOOKUP = "sdm-lookup.jar"
"""The file of the functions that statements call: lookups in tables, and patterns."""
TRANSFORMATIONS = "sdm-transformations"
"""The plugin of what marks copied records, refuses incomplete rows, names and requests."""
BROKERS = "sdm-brokers.jar"
"""The file of the brokers' own classes, some of them in place of Kafka's."""
_COMPILED_WITH = (
    "connect-api",
    "jakarta.servlet-api",
    "jakarta.ws.rs-api",
    "jetty-ee10-servlet",
    "jetty-io",
    "jetty-server",
    "jetty-util",
    "kafka-clients",
    "kafka-group-coordinator",
    "kafka-metadata",
    "kafka-server",
    "kafka-server-common",
    "kafka_2.13",
    "slf4j-api",
)
"""Jars that the image has already, by their names: only for the compiler."""


def collect(store: JarStore, folder: Path) -> None:
    """Fill FOLDER/plugins and FOLDER/spark from a complete store.

    Raises:
        ServiceFailedError: one of the mesh's own jars does not compile.
    """
    shutil.copytree(connect_plugins(store, folder / "work"), folder / "plugins")
    (folder / "spark").mkdir()
    for jar in spark_jars(store):
        shutil.copyfile(store.path(jar), folder / "spark" / Path(jar.path).name)
    compile_once(folder / "spark" / LOOKUP, class_path(store), LOOKUP_SOURCES)
    known = joined(store.path(jar) for jar in store.of("kafka"))
    transformations = folder / "plugins" / TRANSFORMATIONS / f"{TRANSFORMATIONS}.jar"
    compile_transformations(transformations, known)
    compile_for_brokers(folder / "kafka" / BROKERS, known)
    shutil.rmtree(folder / "work")


def main() -> int:
    """Fetch and collect into the only argument; return 2 where there is none."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m local_platform.containers.jars FOLDER\n")
        return 2
    settings, folder = PlatformSettings(), Path(sys.argv[1])
    every = JarStore(folder / "store", read_lock())
    added = (*every.of("plugins", "plugins/apicurio"), *spark_jars(every))
    here = [jar for jar in every.of("kafka") if jar.artifact in _COMPILED_WITH]
    needed = replace(every, jars=(*added, *here))
    Fetcher(needed, settings.maven_url).fetch()
    collect(needed, folder)
    shutil.rmtree(needed.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
