"""`python -m benchmarks NAME [options]`, against the mesh at SDM_HOME."""

import argparse
from pathlib import Path

from local_platform import Endpoints, PlatformError, PlatformSettings

START = "start"
"""Stops and starts the mesh at SDM_HOME: it need not run."""


def main() -> None:
    """Run one benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=[*RUNS, START])
    parser.add_argument(
        "--events", type=int, default=1_000_000, help="replay, verify, snapshots: events"
    )
    parser.add_argument("--verified", type=int, default=100_000, help="replay: signatures checked")
    parser.add_argument("--questions", type=int, default=500, help="snapshots: asked so often")
    parser.add_argument("--rounds", type=int, default=10, help="control: grants and revocations")
    parser.add_argument("--intents", type=int, default=10_000, help="decisions: in each round")
    parser.add_argument("--records", type=int, default=10_000_000, help="garbage: unusable ones")
    parser.add_argument("--backlog", type=int, default=500_000, help="link: records to catch up")
    parser.add_argument("--story", type=Path, help="start: JSON of `./scripts/demo --json`")
    parser.add_argument("--clicks", type=int, default=2_000_000, help="click_users, join_size")
    parser.add_argument("--users", type=int, default=100_000, help="click_users: how many")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[1_000, 1_000_000], help="join_size: users"
    )
    parser.add_argument("--turns", type=int, default=3, help="click_users, join_size")
    options = parser.parse_args()
    settings = PlatformSettings()
    if options.name == START:
        from benchmarks import start

        start.run(settings, options.story)
        return
    try:
        endpoints = Endpoints.load(settings.home)
    except PlatformError as fault:
        raise SystemExit(str(fault)) from None
    RUNS[options.name](options, settings, endpoints)


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

    link.run(endpoints, settings.home, options.backlog)


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
    main()
