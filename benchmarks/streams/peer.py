"""Compiles the program once, starts it, and ends it by its own process id."""

import hashlib
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from local_platform import PlatformSettings
from local_platform.jars.fetch import Fetcher
from local_platform.jars.java import java, properties
from local_platform.jars.lock import JarStore, read_lock
from local_platform.site import Site

HERE = Path(__file__).parent
HEAP_MB = 1500
_COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"


class Peer:
    """Kafka Streams with two threads, at-least-once, as its own defaults are."""

    def __init__(self, settings: PlatformSettings, folder: Path) -> None:
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
        self._classes = self._compiled(site.cache)

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

    def start(self, told: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        """Start it with these settings; it runs until it is ended."""
        config = self._folder / "streams.properties"
        config.write_text(properties({name: _escaped(text) for name, text in told.items()}))
        config.chmod(0o600)
        argv = java("ClickUsers", HEAP_MB, f"{self._classes}:{self._path}")
        with (self._folder / "streams.log").open("wb") as log:
            return subprocess.Popen([*argv, str(config)], stdout=log, stderr=subprocess.STDOUT)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
