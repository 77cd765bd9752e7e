"""Figures with what they were measured on: machine, load, versions."""

import json
import os
import platform
import shutil
import statistics
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from local_platform.jars.java import packaged_runtime
from local_platform.jars.lock import read_lock
from mesh_events.signing import SigningKey, decode_public, verifies

RESULTS = Path(__file__).parent / "results"
_WRITTEN = ("benchmarks/results", "docs/figures.md", "README.md")
"""What a run writes, paths in the repository: another one after it measures the same code."""
SIGNATURES = 2_000
"""So many are checked to see how fast a core is."""
_PACKAGES = ("confluent-kafka", "faust-streaming", "aiokafka", "fastavro", "pydantic", "pyspark")


def surroundings() -> dict[str, Any]:
    """What a figure depends on besides the code."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "processor": _processor(),
        "load_before": round(os.getloadavg()[0], 2),
        "signatures_per_s": _signatures_per_s(),
        "python": platform.python_version(),
        "java": _java(),
        "kafka": f"{_kafka()}, one broker per cluster, no fsync per record",
        **{name: metadata.version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    """The model of a core, "" where the system does not say."""
    found = Path("/proc/cpuinfo")
    lines = found.read_text("utf-8").splitlines() if found.exists() else []
    return next((one.partition(":")[2].strip() for one in lines if one[:10] == "model name"), "")


def _java() -> str:
    """The version of the Java that servers run on, as it says itself."""
    program = packaged_runtime() / "bin" / "java"
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    return (done.stderr or done.stdout).partition("\n")[0].strip()


def _signatures_per_s() -> int:
    """How many signatures a core checks: the same code is faster on another machine."""
    key = SigningKey.generate()
    value = bytes(500)
    public, signature = decode_public(key.public), key.sign(key.public, b"key", value)
    start = time.perf_counter()
    for _ in range(SIGNATURES):
        verifies(public, signature, key.public, b"key", value)
    return round(SIGNATURES / (time.perf_counter() - start))


def _kafka() -> str:
    """The version of the brokers' own jar."""
    name = "org.apache.kafka:kafka_2.13:"
    found = next(jar.coordinate for jar in read_lock() if jar.coordinate.startswith(name))
    return found.removeprefix(name).partition(":")[0]


def _commit() -> str:
    """The commit that is measured, with `+` where files differ from it; "" outside of a clone."""
    git = shutil.which("git")
    if git is None:
        return ""

    def asked(*words: str) -> str:
        done = subprocess.run(
            [git, *words], cwd=RESULTS.parents[1], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    others = [f":(exclude){path}" for path in _WRITTEN]
    changed = asked("status", "--porcelain", "--untracked-files=no", "--", ".", *others)
    return asked("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """p50, p99 and greatest of some durations, in ms."""
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, round(0.99 * (len(ordered) - 1)))]
    return {
        "n": len(ordered),
        "p50_ms": round(statistics.median(ordered) * 1000, 1),
        "p99_ms": round(p99 * 1000, 1),
        "max_ms": round(ordered[-1] * 1000, 1),
    }


def tell(name: str, around: dict[str, Any], figures: dict[str, dict[str, Any]]) -> None:
    """Print a table and write `results/<name>.json`."""
    console = Console()
    table = Table(title=f"{name} (load before: {around['load_before']})", title_justify="left")
    columns = list(dict.fromkeys(key for row in figures.values() for key in row))
    for column in ("", *columns):
        table.add_column(column)
    for label, row in figures.items():
        table.add_row(label, *(str(row.get(column, "")) for column in columns))
    console.print(table)
    RESULTS.mkdir(exist_ok=True)
    around = {**around, "load_after": round(os.getloadavg()[0], 2)}
    document = {"figures": figures, "measured_on": around}
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n", "utf-8")
