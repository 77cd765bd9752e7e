"""Command line of the fault run; see the package's docstring."""

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local_platform import PlatformError
from tests.faults.run import report
from tests.faults.run.catalogue import ALONE, SHARED
from tests.faults.run.fault import Fault, Outcome, Place, Verdict, judged
from tests.faults.run.stage import Stage

START_S = 600
"""For the start of the servers; the first start also fetches them."""


def main() -> int:
    """Run the chosen faults; 0 if none failed, 1 if one did, 2 for a wrong name."""
    asked = arguments()
    known = {each.name: each.sentence for each in SHARED}
    known |= {each.name: each.sentence for each in ALONE}
    if asked.list:
        sys.stdout.writelines(f"{name:<30}{sentence}\n" for name, sentence in known.items())
        return 0
    if unknown := set(asked.only) - known.keys():
        sys.stderr.write(f"no fault {', '.join(sorted(unknown))}: see `./scripts/faults --list`\n")
        return 2
    # a run that is told to stop still stops its servers
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    verdicts: list[Verdict] = []
    meanwhile: list[dict[str, Any]] = []
    try:
        for verdict in run(asked.only, meanwhile, keep=asked.keep):
            verdicts.append(verdict)
            say(verdict.line())
            if verdict.trace:
                sys.stderr.write(verdict.trace)
    except PlatformError as error:
        sys.stderr.write(f"the mesh did not start: {error}\n")
        return 1
    finally:
        if verdicts:
            say(f"\n{report.table(verdicts)}")
        if asked.json is not None:
            report.write(verdicts, asked.json, meanwhile)
    return 0 if report.succeeded(verdicts) else 1


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="./scripts/faults", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these faults")
    parser.add_argument("--list", action="store_true", help="tell the faults and stop")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts as JSON")
    parser.add_argument("--keep", action="store_true", help="leave the mesh running afterwards")
    return parser.parse_args()


def run(only: list[str], meanwhile: list[dict[str, Any]], *, keep: bool) -> Iterator[Verdict]:
    """Inject what was chosen, all where nothing was; `meanwhile` gets what each mesh's load did.

    What a failed fault left behind must not count against the next one, which gets a new mesh.
    """
    left = chosen(SHARED, only)
    while left:
        bound = sum(each.bound_s for each in left) + START_S
        stage = Stage.start(lifetime_s=bound * 1.2, port_base=port_base())
        say(f"a mesh stands at {stage.home}; faults to come: {len(left)}")
        failed = False
        try:
            while left and not failed:
                verdict = judged(left.pop(0), lambda: stage)  # noqa: B023 - called at once
                failed = verdict.outcome is Outcome.FAIL
                yield verdict
            if failed:
                say(f"        the servers' logs: {stage.kept_logs()}")
            meanwhile.append(stage.tell())
        finally:
            stage.close(keep=keep and not left)
    # whoever needs servers of its own has the machine for itself
    for each in chosen(ALONE, only):
        yield judged(each, lambda: None)


def chosen(faults: tuple[Fault[Place], ...], only: list[str]) -> list[Fault[Place]]:
    """Those that were asked for, in the order of the list."""
    return [each for each in faults if not only or each.name in only]


def port_base() -> int | None:
    """The ports that were asked for, by the same variable as for `sdm up`."""
    given = os.environ.get("SDM_PORT_BASE")
    return int(given) if given else None


def say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
