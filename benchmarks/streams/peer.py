"""Compiles the program once, starts it, and ends it by its own process id."""

import hashlib
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from local_platform import PlatformSettings
from local_platform.jars.fetch import Fetcher
from local_platform.jars.java import java, large_jvm, properties
from local_platform.jars.lock import JarStore, read_lock
from local_platform.site import Site

HERE = Path(__file__).parent
_COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"


class Peer:
    """Applications of Kafka Streams, one after the other, in one JVM like a Spark server's.

    Raises SystemExit where the JVM ends, with the place of its log.
    """

    def __init__(self, settings: PlatformSettings, folder: Path, heap_mb: int) -> None:
        site = Site.of(settings)
        store = JarStore(site.cache / "jars", read_lock(HERE / "jars.lock.json"))
        Fetcher(store, settings.maven_url).fetch()
        own = [store.folder / jar.path for jar in store.jars]
        groups = ("kafka", "spark")
        # Kafka's own come first: Spark brings other versions of some of them
        platform = [
            site.jars.folder / jar.path
            for group in groups
            for jar in site.jars.jars
            if jar.group == group
        ]
        import pyspark

        # Avro itself
        bundled = sorted((Path(pyspark.__file__).parent / "jars").glob("avro-1*.jar"))
        self._path = ":".join(map(str, [*own, *platform, *bundled]))
        self._folder = folder
        classes = self._compiled(site.cache)
        options = large_jvm(settings)
        argv = java("ClickUsers", heap_mb, f"{classes}:{self._path}", options)
        self._log = folder / "streams.log"
        with self._log.open("wb") as log:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=log, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)

    @property
    def pid(self) -> int:
        """The process of the JVM."""
        return self._process.pid

    def _compiled(self, cache: Path) -> Path:
        source = HERE / "ClickUsers.java"
        digest = hashlib.sha256(source.read_bytes() + self._path.encode()).hexdigest()[:16]
        made = cache / "benchmarks" / digest
        if not made.exists():
            part = made.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            argv = java(_COMPILER, 512, self._path)
            options = ["-17", "-nowarn", "-cp", self._path, "-d", str(part), str(source)]
            subprocess.run([*argv, *options], check=True)
            part.rename(made)
        return made

    def start(self, told: Mapping[str, str]) -> None:
        """Start an application with these settings; it runs until `stop`."""
        config = self._folder / "streams.properties"
        config.write_text(properties({name: _escaped(text) for name, text in told.items()}))
        config.chmod(0o600)
        self._ask(str(config))

    def stop(self) -> None:
        """End the application, if one runs."""
        self._ask("")

    def _ask(self, line: str) -> None:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        asked.write(f"{line}\n")
        asked.flush()
        for answer in answers:
            if answer == "done\n":
                return
        raise SystemExit(f"Kafka Streams ended: {self._log.read_text('utf-8')[-2000:]}")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
