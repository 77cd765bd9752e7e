"""`./scripts/bench [NAME ...]`: benchmarks on a mesh of their own, and the tables of figures."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import stale, tables
from benchmarks.catalogue import BENCHMARKS
from benchmarks.report import RESULTS
from local_platform import Endpoints, PlatformSettings
from mesh_events.settings import default_home

PORT_BASE = 26000
"""The benchmarks' ports lie apart from those of `sdm up` and of the demo."""
START, FAULTS = "start", "faults"
"""The first one stops and starts the mesh, the other one has meshes of its own."""


def main() -> int:
    """Run what is asked for; 1 where --stale lists something."""
    options = _options()
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        sys.stderr.write(f"no benchmark {unknown[0]}: use {', '.join(BENCHMARKS)}\n")
        return 2
    names = options.names or list(BENCHMARKS)
    if options.stale:
        found = stale.listing(names)
        sys.stdout.write("".join(f"{line}\n" for line in found) or "no result is stale\n")
        return 1 if found else 0
    if not options.write:
        _measure(names, options)
    tables.write()
    return 0


def _options() -> argparse.Namespace:
    listed = "\n".join(f"  {name:<12} {one.summary}" for name, one in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="./scripts/bench",
        description=__doc__,
        epilog=f"benchmarks:\n{listed}\n\nSDM_BENCH_HOME is the folder of their mesh, emptied each "
        "time; with SDM_HOME a running mesh is used as it is.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; default: all")
    parser.add_argument(
        "--stale", action="store_true", help="list results that are older than their code"
    )
    parser.add_argument("--write", action="store_true", help="write the tables only")
    parser.add_argument(
        "--events", type=int, default=1_000_000, help="replay, verify, snapshots: events"
    )
    parser.add_argument("--verified", type=int, default=100_000, help="replay: signatures checked")
    parser.add_argument("--questions", type=int, default=500, help="snapshots: asked so often")
    parser.add_argument("--rounds", type=int, default=10, help="control: grants and revocations")
    parser.add_argument("--intents", type=int, default=10_000, help="decisions: in each round")
    parser.add_argument("--records", type=int, default=10_000_000, help="garbage: unusable ones")
    parser.add_argument("--backlog", type=int, default=500_000, help="link: records to catch up")
    parser.add_argument("--clicks", type=int, default=2_000_000, help="click_users, join_size")
    parser.add_argument("--users", type=int, default=100_000, help="click_users: how many")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[1_000, 1_000_000], help="join_size: users"
    )
    parser.add_argument("--turns", type=int, default=5, help="click_users, join_size, link: rounds")
    return parser.parse_args()


def _measure(names: list[str], options: argparse.Namespace) -> None:
    """One after the other, in the order of the catalogue."""
    is_own = "SDM_HOME" not in os.environ
    on_mesh = [name for name in BENCHMARKS if name in names and name != FAULTS]
    if is_own:
        os.environ["SDM_HOME"] = os.environ.get("SDM_BENCH_HOME") or f"{default_home()}-bench"
        os.environ.setdefault("SDM_PORT_BASE", str(PORT_BASE))
    if on_mesh and is_own:
        _sdm("up", "--fresh", "--yes")
    try:
        for name in on_mesh:
            sys.stdout.write(f"{name}: {BENCHMARKS[name].minutes} minutes or so\n")
            _run(name, options)
    finally:
        if on_mesh and is_own:
            _sdm("down")
    if FAULTS in names:
        result = str(RESULTS / f"{FAULTS}.json")
        subprocess.run([sys.executable, "-m", "tests.faults.run", "--json", result], check=True)


def _run(name: str, options: argparse.Namespace) -> None:
    settings = PlatformSettings()
    if name == START:
        from benchmarks import start

        start.run(settings, _story())
        return
    RUNS[name](options, settings, Endpoints.load(settings.home))


def _story() -> Path:
    """The demo's own account of itself."""
    path = Path(tempfile.mkdtemp()) / "story.json"
    demo = [sys.executable, "-m", "self_service.demo", "--json", str(path)]
    kept = {name: value for name, value in os.environ.items() if name != "SDM_PORT_BASE"}
    subprocess.run(demo, check=True, env=kept, stdout=subprocess.DEVNULL)
    return path


def _sdm(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "self_service.cli", *words], check=True)


def _click_users(
    options: argparse.Namespace, settings: PlatformSettings, endpoints: Endpoints
) -> None:
    from benchmarks import click_users

    click_users.run(settings, endpoints, options.clicks, options.users, options.turns)


def _join_size(
    options: argparse.Namespace, settings: PlatformSettings, endpoints: Endpoints
) -> None:
    from benchmarks import click_users

    click_users.run_sizes(settings, endpoints, options.clicks, options.sizes, options.turns)


def _link(options: argparse.Namespace, settings: PlatformSettings, endpoints: Endpoints) -> None:
    from benchmarks import link

    link.run(settings, endpoints, settings.home, options.backlog, options.turns)


def _verify(options: argparse.Namespace, _: PlatformSettings, endpoints: Endpoints) -> None:
    from benchmarks import verify

    verify.run(endpoints, options.events)


def _snapshots(options: argparse.Namespace, _: PlatformSettings, endpoints: Endpoints) -> None:
    from benchmarks import snapshots

    snapshots.run(endpoints, options.events, options.questions)


def _replay(options: argparse.Namespace, _: PlatformSettings, endpoints: Endpoints) -> None:
    from benchmarks import replay

    replay.run(endpoints, options.events, options.verified)


def _decisions(
    options: argparse.Namespace, settings: PlatformSettings, endpoints: Endpoints
) -> None:
    from benchmarks import decisions

    decisions.run(endpoints, settings.home, options.intents)


def _garbage(options: argparse.Namespace, settings: PlatformSettings, endpoints: Endpoints) -> None:
    from benchmarks import garbage

    garbage.run(endpoints, settings.home, options.records)


def _control(options: argparse.Namespace, settings: PlatformSettings, endpoints: Endpoints) -> None:
    from benchmarks import control

    control.run(endpoints, settings.home, options.rounds)


RUNS = {
    "replay": _replay,
    "verify": _verify,
    "snapshots": _snapshots,
    "control": _control,
    "decisions": _decisions,
    "garbage": _garbage,
    "link": _link,
    "click_users": _click_users,
    "join_size": _join_size,
}
"""Name -> what it runs against the mesh at SDM_HOME."""


if __name__ == "__main__":
    raise SystemExit(main())
