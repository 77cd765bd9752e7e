"""Jars of the mesh's own classes for Spark, Connect and brokers, compiled from source when needed.

The compiler is the one that PySpark brings for its own shell. It takes some seconds, once for each
source and version of Spark: the jar lies in the cache.
"""

import hashlib
import subprocess
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from local_platform import clients_jvm, jvm, registry_jvm
from local_platform.errors import ServiceFailedError
from local_platform.files import public_folder
from local_platform.jars.java import java
from local_platform.jars.lock import joined
from processors import mirror
from processors.connect import jvm as connect
from spark_streams.jvm import PATCH, SOURCES

LOOKUP_SOURCES = (*SOURCES, *clients_jvm.SOURCES, *connect.DECODER)
_TRANSFORMATIONS = (*dict.fromkeys((mirror.SOURCE, *connect.SOURCES, *clients_jvm.SOURCES)),)
_SERVICES = "META-INF/services/org.apache.kafka.connect"
_MANIFESTS = {
    f"{_SERVICES}.transforms.Transformation": (mirror.TRANSFORMATION, *connect.TRANSFORMATIONS),
    f"{_SERVICES}.rest.ConnectRestExtension": (connect.REST_EXTENSION,),
}
"""Files of the jar by which Connect finds its classes."""
_COMPILING = threading.Lock()
"""Two brokers start at the same time."""
_HEAP_MB = 512
_TIMEOUT_S = 300


def lookup_jar(cache: Path, class_path: str) -> Path:
    """Return where the jar lies once it is compiled.

    Args:
        cache: the cache's folder.
        class_path: what Spark's server runs from, the compiler included.
    """
    return _place(cache / "lookup", LOOKUP_SOURCES, class_path)


def transformations_jar(cache: Path, class_path: str) -> Path:
    """Return where the jar of Connect's plugins lies once it is compiled; see above."""
    return _place(cache / "transformations", _TRANSFORMATIONS, class_path)


def broker_jar(cache: Path, class_path: str) -> Path:
    """Return where the jar of the brokers' own classes lies once it is compiled."""
    return _place(cache / "brokers", jvm.SOURCES, class_path)


def _place(folder: Path, sources: Sequence[Path], class_path: str) -> Path:
    found = hashlib.sha256(class_path.encode())
    for source in sources:
        found.update(hashlib.sha256(source.read_bytes()).digest())
    digest = found.hexdigest()[:16]
    return folder / f"{digest}.jar"


def compile_transformations(jar: Path, class_path: str) -> None:
    """Compile the jar of Connect's plugins if it is not there; see `compile_once`.

    It holds eleven of Kafka's classes as well, and has to come before Kafka's jars: see
    `processors.connect.jvm.worker`.
    """
    with_compiler = f"{class_path}:{_tools()}"
    manifests = {
        name: "".join(f"{one}\n" for one in classes) for name, classes in _MANIFESTS.items()
    }
    compile_once(jar, with_compiler, _TRANSFORMATIONS, manifests, connect.PATCH)


def compile_lookup(jar: Path, class_path: str) -> None:
    """Compile the jar of Spark's servers if it is not there; see `compile_once`.

    It holds classes of Spark's and of Kafka's as well, and has to come before theirs.
    """
    compile_once(jar, class_path, LOOKUP_SOURCES, patch=PATCH)


def patch_plugins(plugins: Path, class_path: str) -> None:
    """Compile a jar beside each jar of Connect's plugins that is patched; see `compile_once`.

    It holds classes of databases' drivers, which bound what an answer takes of Connect's memory, of
    Debezium's sink, or of the Avro converter. Connect reads a plugin's jars in the order of their
    names, and so takes these.

    Args:
        plugins: the folder of plugins.
        class_path: what Connect runs from.
    """
    for patch in connect.PATCHES:
        for patched in sorted(plugins.glob(patch.jars)):
            # a name before those of all plugins
            jar = patched.with_name(f"a-bounded-{patched.name}")
            beside = joined(sorted(patched.parent.glob("*.jar")))
            compile_once(jar, f"{beside}:{class_path}:{_tools()}", patch.sources, patch=patch.main)


def plugins_digest() -> str:
    """Names the jars above by their sources."""
    return digest(source for patch in connect.PATCHES for source in patch.sources)


def digest(sources: Iterable[Path]) -> str:
    """Eight letters that are others when one of the files is."""
    return hashlib.sha256(b"".join(one.read_bytes() for one in sources)).hexdigest()[:8]


def compile_for_brokers(jar: Path, class_path: str) -> None:
    """Compile the jar of the brokers' own classes if it is not there; see `compile_once`.

    It holds twenty-six of Kafka's classes as well, which ask for bounds: see `local_platform.jvm`.
    """
    with _COMPILING:
        compile_once(jar, f"{class_path}:{_tools()}", jvm.SOURCES, patch=jvm.PATCH)


def compile_for_registry(jar: Path, class_path: str) -> None:
    """Compile a jar of `local_platform.registry_jvm` if it is not there; see `compile_once`."""
    with_compiler = f"{class_path}:{_tools()}"
    compile_once(jar, with_compiler, registry_jvm.SOURCES, patch=registry_jvm.PATCH)


def _tools() -> str:
    """The compiler, and what reads and writes classes."""
    return joined([*pyspark_jars("scala-*"), *pyspark_jars("xbean-asm*")])


def pyspark_jars(pattern: str = "*") -> list[Path]:
    """The jars that PySpark brings; raises ServiceFailedError where there is no PySpark."""
    return list(pyspark_folder().glob(f"{pattern}.jar"))


def pyspark_folder() -> Path:
    """The folder of the jars that PySpark brings; raises ServiceFailedError without PySpark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ServiceFailedError("pyspark is not installed: reinstall with its `connect` extra")
    return Path(spec.origin).parent / "jars"


def compile_once(
    jar: Path,
    class_path: str,
    sources: Sequence[Path],
    more: Mapping[str, str] | None = None,
    patch: str | None = None,
) -> None:
    """Compile the jar if it is not there.

    Args:
        jar: where it is to lie.
        class_path: what it runs from, with the compiler.
        sources: files of Scala.
        more: other files of the jar, name -> text.
        patch: a main class among the compiled ones; the jar also gets what it writes below the
            folder that it is given.

    Raises:
        ServiceFailedError: it does not compile; the text ends with what the compiler says.
    """
    if jar.exists():
        return
    public_folder(jar.parent)
    names = ", ".join(source.name for source in sources)
    with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
        made = Path(folder) / jar.name
        options = ["-cp", class_path, "-d", str(made), *map(str, sources)]
        said = _run(java("scala.tools.nsc.Main", _HEAP_MB, class_path) + options, names)
        if not made.exists():
            raise ServiceFailedError(f"{names} does not compile:\n{said}")
        patched = Path(folder) / "patched"
        if patch is not None:
            _run([*java(patch, _HEAP_MB, f"{made}:{class_path}"), str(patched)], patch)
        with zipfile.ZipFile(made, "a") as opened:
            for name, text in (more or {}).items():
                opened.writestr(name, text)
            for file in sorted(patched.rglob("*.class")):
                opened.write(file, file.relative_to(patched))
        # the domains' servers read it as well, whose accounts are others
        made.chmod(0o644)
        made.rename(jar)


def _run(argv: Sequence[str], what: str) -> str:
    """The end of what a program prints; raises ServiceFailedError with it if that fails."""
    try:
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired as fault:
        raise ServiceFailedError(f"{what}: not compiled in {_TIMEOUT_S} s") from fault
    said = (done.stdout + done.stderr).strip()[-2000:]
    if done.returncode:
        raise ServiceFailedError(f"{what} does not compile:\n{said}")
    return said
