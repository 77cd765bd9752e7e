"""`./scripts/simulate`: many schedules on all cores; a fault ends with its shortest schedule."""

import argparse
import json
import os
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

import pytest

from tests.simulation.planted import PLANTED
from tests.simulation.schedules import FoundError, again, explore
from tests.simulation.simulation import replaced, simulate

USUAL = 10_000
PARTS = 8
"""Parts for each core, so that a fault is told soon."""


@dataclass(frozen=True, slots=True)
class Found:
    """What must not be, and the shortest schedule that shows it."""

    seed: int
    text: str
    acts: list[tuple[str, int, int]]


def main() -> int:
    """Run as the command line says; 0 if every invariant held, 1 if not."""
    parser = argparse.ArgumentParser("simulate", description=__doc__)
    parser.add_argument("schedules", nargs="?", type=int, default=USUAL, help=f"default {USUAL}")
    parser.add_argument("--seed", type=int, help="the same seed gives the same schedules")
    parser.add_argument("--replay", metavar="JSON", help="run one schedule, as a fault printed it")
    parser.add_argument("--planted", action="store_true", help="take checks out, and see it found")
    given = parser.parse_args()
    if given.replay:
        return _replay(given.replay)
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    if given.planted:
        return _planted(max(1, given.schedules), seed)
    return _many(max(1, given.schedules), seed)


def _many(schedules: int, seed: int) -> int:
    cores, began = os.cpu_count() or 1, time.monotonic()
    parts = min(schedules, cores * PARTS)
    shares = [schedules // parts + (number < schedules % parts) for number in range(parts)]
    say(f"{schedules} schedules, seed {seed}, {cores} processes")
    with ProcessPoolExecutor(cores) as pool:
        jobs = [pool.submit(_part, share, seed, part) for part, share in enumerate(shares)]
        for job in as_completed(jobs):
            if (found := job.result()) is not None:
                pool.shutdown(wait=False, cancel_futures=True)
                return _tell(found)
    took = time.monotonic() - began
    say(f"every invariant held: {schedules} schedules in {took:.0f} s")
    return 0


def _part(schedules: int, seed: int, part: int) -> Found | None:
    try:
        explore(schedules, seed * 1000 + part)
    except FoundError as found:
        return Found(seed, found.text, found.acts)
    return None


def _tell(found: Found) -> int:
    say(f"found with seed {found.seed}: {found.text}")
    say("the shortest schedule that shows it:")
    for act in found.acts:
        say("   " + " ".join(map(str, act)))
    say(f"run it alone: {again(found.acts)}")
    return 1


def _planted(most: int, seed: int) -> int:
    """Take each check out by itself; 0 if every time something is found that must not be."""
    missed = 0
    for name, plant in PLANTED.items():
        began = time.monotonic()
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            try:
                explore(most, seed, shrink=False)
            except FoundError as found:
                verdict = f"found: {found.text[:100]}"
            else:
                verdict, missed = f"NOT FOUND in {most} schedules", missed + 1
        say(f"{name}\n    {time.monotonic() - began:.0f} s, {verdict}")
    return 1 if missed else 0


def _replay(text: str) -> int:
    acts = [(str(name), int(a), int(b)) for name, a, b in json.loads(text)]
    with replaced():
        world = simulate(acts)
    say(f"every invariant held: {len(acts)} acts, {len(world.log.records)} records")
    return 0


def say(line: str) -> None:
    """A line for people."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
