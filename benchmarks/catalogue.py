"""The benchmarks by name: what each measures, and which code its figures are of."""

from collections.abc import Mapping
from dataclasses import dataclass

_LOG = ("mesh_events", "schemas", "projections")
_WORKER = (*_LOG, "processors")
_CLUSTERS = ("local_platform/jvm", "local_platform/services")
_FLOWS = ("processors/controllers/flows", "processors/clusters")
_ALL = ("benchmarks/report.py", "benchmarks/scratch.py", "requirements.lock", "local_platform/jars")
"""Of every benchmark: versions of libraries and servers, and how Java is run."""
_STATEMENTS = ("spark_streams", "processors/controllers/statements", *_FLOWS, *_CLUSTERS)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark.

    Attributes:
        summary: what it measures.
        code: paths in the repository, files or folders, whose changes make its figures old.
        command: what measures it again.
        minutes: how long it takes, about, on two cores.
    """

    summary: str
    code: tuple[str, ...]
    command: str
    minutes: int


def _one(name: str, summary: str, minutes: int, *code: str) -> Benchmark:
    own = f"benchmarks/{name}.py"
    return Benchmark(summary, (own, *_ALL, *code), f"./scripts/bench {name}", minutes)


BENCHMARKS: Mapping[str, Benchmark] = {
    "start": _one("start", "a warm start, and memory", 2, "local_platform", "processors"),
    "control": _one(
        "control", "intents, grants and revocations", 4, "benchmarks/latency.py", *_WORKER
    ),
    "decisions": _one(
        "decisions",
        "decisions a second, and beside floods",
        12,
        "benchmarks/latency.py",
        "benchmarks/processes.py",
        *_WORKER,
        "self_service/cli/audit/log.py",
        "self_service/cli/audit/history.py",
        *_CLUSTERS,
    ),
    "link": _one(
        "link",
        "a copy in another cluster, beside MirrorMaker 2",
        20,
        "benchmarks/mirror_maker.py",
        "benchmarks/processes.py",
        "benchmarks/control.py",
        "benchmarks/members.py",
        "spark_streams",
        "processors/mirror",
        "processors/controllers/links",
        *_FLOWS,
        *_CLUSTERS,
    ),
    "click_users": _one(
        "click_users",
        "clicks joined with users, beside Kafka Streams",
        25,
        "benchmarks/clicks.py",
        "benchmarks/processes.py",
        "benchmarks/streams",
        *_STATEMENTS,
    ),
    "join_size": Benchmark(
        "the same over small and large tables",
        ("benchmarks/click_users.py", "benchmarks/clicks.py", *_ALL, *_STATEMENTS),
        "./scripts/bench join_size",
        12,
    ),
    "replay": _one("replay", "folding a log", 5, "benchmarks/workload.py", *_LOG),
    "verify": _one(
        "verify",
        "verifying a log",
        5,
        "benchmarks/workload.py",
        *_LOG,
        "self_service/cli/audit",
        "self_service/cli/verification",
    ),
    "snapshots": _one(
        "snapshots", "the state at any offset", 10, "benchmarks/workload.py", *_LOG, "snapshots"
    ),
    "garbage": _one("garbage", "ten million unusable records", 20, *_WORKER, "snapshots"),
    "faults": Benchmark(
        "recovery from each fault",
        ("tests/faults/run", *_ALL, *_WORKER, "spark_streams", "snapshots", "local_platform"),
        "./scripts/faults --json benchmarks/results/faults.json",
        25,
    ),
}
"""Name -> benchmark; the name is that of its file below `results`."""
