"""`./scripts/simulate`: many schedules on all cores; a fault ends with its shortest schedule."""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial

import pytest

from tests.simulation.kept import FOUND, keep_schedules, kept_schedules
from tests.simulation.planted import PLANTED, UNSEEN
from tests.simulation.schedules import FoundError, again, explore, run
from tests.simulation.world import Act

USUAL = 10_000
PARTS = 8
"""Parts for each core, so that a fault is told soon."""


@dataclass(frozen=True, slots=True)
class Found:
    """What must not be, and the shortest schedule that shows it."""

    seed: int
    text: str
    acts: list[Act]


def main() -> int:
    """Run as the command line says; 0 if every invariant held, 1 if not."""
    parser = argparse.ArgumentParser("simulate", description=__doc__)
    parser.add_argument("schedules", nargs="?", type=int, default=USUAL, help=f"default {USUAL}")
    parser.add_argument("--seed", type=int, help="the same seed gives the same schedules")
    parser.add_argument("--replay", metavar="JSON", help="run one schedule, as a fault printed it")
    parser.add_argument("--planted", action="store_true", help="take checks out, and see it found")
    parser.add_argument("--keep", action="store_true", help="with --planted: keep what shows them")
    given = parser.parse_args()
    if given.replay:
        return _replay(given.replay)
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    if given.keep and not given.planted:
        parser.error("--keep belongs to --planted")
    if given.planted:
        return _planted(max(1, given.schedules), seed, keep=given.keep)
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


def _planted(most: int, seed: int, *, keep: bool) -> int:
    """Take each check out by itself; 0 if something is found each time, but for `UNSEEN`.

    To keep schedules, a search is made for those faults only that no kept one shows.
    """
    kept, missed = kept_schedules(), 0
    known = kept.keys() & PLANTED.keys() if keep else set()
    shown = {name for name in known if _shown(name, partial(run, kept[name])) is not None}
    with ProcessPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = {
            pool.submit(_seek, name, most, seed, keep): name
            for name in PLANTED
            if name not in shown
        }
        for job in as_completed(jobs):
            name, (took, found) = jobs[job], job.result()
            missed += found is None and name not in UNSEEN
            expected = ", as is known" if name in UNSEEN else ""
            verdict = f"NOT FOUND in {most} schedules{expected}"
            if found is not None:
                verdict = f"found: {found.text[:100]}"
            say(f"{name}\n    {took:.0f} s, {verdict}")
            if keep and found is not None:
                kept[name] = found.acts
                names = (one for one in sorted(kept) if one in PLANTED or one.startswith(FOUND))
                keep_schedules({name: kept[name] for name in names})
    return 1 if missed else 0


def _shown(name: str, search: Callable[[], object]) -> FoundError | None:
    """What a search finds with one check taken out."""
    with pytest.MonkeyPatch.context() as patch:
        PLANTED[name](patch)
        try:
            search()
        except FoundError as found:
            return found
    return None


def _seek(name: str, most: int, seed: int, shortest: bool) -> tuple[float, Found | None]:
    """Seconds of a search with one check taken out, and what it found."""
    began = time.monotonic()
    found = _shown(name, partial(explore, most, seed, shrink=shortest))
    took = time.monotonic() - began
    return took, None if found is None else Found(seed, found.text, found.acts)


def _replay(text: str) -> int:
    acts = [(str(name), int(a), int(b)) for name, a, b in json.loads(text)]
    world = run(acts)
    say(f"every invariant held: {len(acts)} acts, {len(world.log.records)} records")
    return 0


def say(line: str) -> None:
    """A line for people."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
