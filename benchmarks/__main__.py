"""`python -m benchmarks NAME [options]`, against the mesh at SDM_HOME."""

import argparse
from pathlib import Path

from local_platform import Endpoints, PlatformError, PlatformSettings

NAMES = (
    "replay",
    "verify",
    "snapshots",
    "control",
    "decisions",
    "link",
    "start",
    "click_users",
    "join_size",
)


def main() -> None:
    """Run one benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument(
        "--events", type=int, default=1_000_000, help="replay, verify, snapshots: events"
    )
    parser.add_argument("--verified", type=int, default=100_000, help="replay: signatures checked")
    parser.add_argument("--questions", type=int, default=500, help="snapshots: asked so often")
    parser.add_argument("--rounds", type=int, default=10, help="control: grants and revocations")
    parser.add_argument("--intents", type=int, default=10_000, help="decisions: in each round")
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
    if options.name == "start":
        from benchmarks import start

        start.run(settings, options.story)
        return
    try:
        endpoints = Endpoints.load(settings.home)
    except PlatformError as fault:
        raise SystemExit(str(fault)) from None
    if options.name == "click_users":
        from benchmarks import click_users

        click_users.run(settings, endpoints, options.clicks, options.users, options.turns)
    elif options.name == "join_size":
        from benchmarks import click_users

        click_users.run_sizes(settings, endpoints, options.clicks, options.sizes, options.turns)
    elif options.name == "link":
        from benchmarks import link

        link.run(endpoints, settings.home, options.backlog)
    elif options.name == "verify":
        from benchmarks import verify

        verify.run(endpoints, options.events)
    elif options.name == "snapshots":
        from benchmarks import snapshots

        snapshots.run(endpoints, options.events, options.questions)
    elif options.name == "replay":
        from benchmarks import replay

        replay.run(endpoints, options.events, options.verified)
    elif options.name == "decisions":
        from benchmarks import decisions

        decisions.run(endpoints, settings.home, options.intents)
    else:
        from benchmarks import control

        control.run(endpoints, settings.home, options.rounds)


if __name__ == "__main__":
    main()
