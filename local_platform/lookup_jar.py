"""The jar with the SQL function that looks tables up, compiled from its source when it is needed.

The compiler is the one that PySpark brings for its own shell. It takes some seconds, once for each
source and version of Spark: the jar lies in the cache.
"""

import hashlib
import subprocess
import tempfile
from pathlib import Path

from local_platform.errors import ServiceFailedError
from local_platform.services.java import java
from spark_streams.jvm import SOURCE

_HEAP_MB = 512
_TIMEOUT_S = 120


def lookup_jar(cache: Path, class_path: str) -> Path:
    """Return where the jar lies once it is compiled.

    Args:
        cache: the cache's folder.
        class_path: what Spark's server runs from, the compiler included.
    """
    digest = hashlib.sha256(SOURCE.read_bytes() + class_path.encode()).hexdigest()[:16]
    return cache / "lookup" / f"{digest}.jar"


def compile_once(jar: Path, class_path: str) -> None:
    """Compile the jar if it is not there.

    Raises:
        ServiceFailedError: it does not compile; the text ends with what the compiler says.
    """
    if jar.exists():
        return
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
        made = Path(folder) / "lookup.jar"
        options = ["-cp", class_path, "-d", str(made), str(SOURCE)]
        argv = [*java("scala.tools.nsc.Main", _HEAP_MB, class_path), *options]
        try:
            done = subprocess.run(
                argv, check=False, capture_output=True, text=True, timeout=_TIMEOUT_S
            )
        except subprocess.TimeoutExpired as fault:
            raise ServiceFailedError(f"{SOURCE.name}: not compiled in {_TIMEOUT_S} s") from fault
        if done.returncode or not made.exists():
            said = (done.stdout + done.stderr).strip()[-2000:]
            raise ServiceFailedError(f"{SOURCE.name} does not compile:\n{said}")
        made.rename(jar)
