"""Command line of the fault run; see the package's docstring."""

import argparse
import os
import random
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_platform import PlatformError
from tests.faults.run import report
from tests.faults.run.catalogue import ALONE, SHARED
from tests.faults.run.fault import Fault, Outcome, Place, Verdict, judged
from tests.faults.run.stage import Stage

START_S = 600
"""For the start of the servers; the first start also fetches them."""
_UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Soak:
    """Faults of the shared mesh in a random order, again and again.

    Args:
        seconds: no fault begins later than that.
        seed: the same one gives the same order.
    """

    seconds: float
    seed: int

    def faults(self, among: Sequence[Fault[Stage]]) -> Iterator[Fault[Stage]]:
        """Each fault once before one comes twice."""
        order, end = random.Random(self.seed), time.monotonic() + self.seconds
        while True:
            for fault in order.sample(among, len(among)):
                if time.monotonic() >= end:
                    return
                yield fault


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
        for verdict in run(asked.only, meanwhile, keep=asked.keep, soak=soak_of(asked)):
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
    parser.add_argument(
        "--for",
        dest="seconds",
        type=duration,
        metavar="DURATION",
        help="as 90s, 45m or 8h: the faults that share a mesh in random order, again and again",
    )
    parser.add_argument("--seed", type=int, help="with --for: the same seed gives the same order")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts as JSON")
    parser.add_argument("--keep", action="store_true", help="leave the mesh running afterwards")
    return parser.parse_args()


def duration(text: str) -> float:
    """Seconds of a duration as `90s`, `45m` or `8h`."""
    if not (found := re.fullmatch(r"([1-9]\d{0,6})([smh])", text, re.ASCII)):
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: 90s, 45m, 8h")
    return float(found[1]) * _UNITS[found[2]]


def soak_of(asked: argparse.Namespace) -> Soak | None:
    """How long faults are drawn; None where each is injected once."""
    if asked.seconds is None:
        return None
    seed = random.SystemRandom().randrange(10**6) if asked.seed is None else asked.seed
    return Soak(asked.seconds, seed)


def run(
    only: list[str], meanwhile: list[dict[str, Any]], *, keep: bool, soak: Soak | None = None
) -> Iterator[Verdict]:
    """Inject what was chosen, all where nothing was; `meanwhile` gets what each mesh's load did.

    What a failed fault left behind must not count against the next one, which gets a new mesh.
    """
    shared = chosen(SHARED, only)
    lifetime_s = START_S + sum(each.bound_s for each in shared)
    faults = iter(shared)
    if soak is not None and shared:
        say(f"faults in random order for {soak.seconds:.0f} s, seed {soak.seed}")
        faults, lifetime_s = soak.faults(shared), lifetime_s + soak.seconds
    fault = next(faults, None)
    while fault is not None:
        stage = Stage.start(lifetime_s=lifetime_s * 1.2, port_base=port_base())
        say(f"a mesh stands at {stage.home}")
        failed = False
        try:
            while fault is not None and not failed:
                verdict = judged(fault, lambda: stage)  # noqa: B023 - called at once
                failed = verdict.outcome is Outcome.FAIL
                yield verdict
                fault = next(faults, None)
            if failed:
                say(f"        the servers' logs: {stage.kept_logs()}")
            meanwhile.append(stage.tell())
        finally:
            stage.close(keep=keep and fault is None)
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
