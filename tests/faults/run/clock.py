"""Clocks an hour off: of the worker that governs, and of those who speak."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mesh_events.settings import key_path
from tests.faults.run.fault import Fault, SkippedError
from tests.faults.run.judge import all_is_right
from tests.faults.run.slow_registry import publish
from tests.faults.run.stage import Stage
from tests.faults.run.takeover import TAKEOVER_S, awake, sleeping
from tests.faults.worker import REPOSITORY

NAMED_BY = "LIBFAKETIME"
"""A variable that names the library where it is not in its usual place."""
PLACES = ("usr/lib/*/faketime/libfaketimeMT.so.1", "usr/lib/faketime/libfaketimeMT.so.1")
WRONG_CLOCK = Path(__file__).parent / "wrong_clock"
HOUR_S = 3600


def library() -> Path:
    """The library that lies about the time; SkippedError says how to get it."""
    given = os.environ.get(NAMED_BY)
    found = [Path(given)] if given else [
        path for place in PLACES for path in Path("/").glob(place)
    ]  # fmt: skip
    if not found or not found[0].exists():
        raise SkippedError(
            "libfaketime is not here: `apt-get install libfaketime`, "
            f"or name its library in {NAMED_BY}"
        )
    return found[0]


def behind(seconds: int) -> dict[str, str]:
    """Variables with which a process believes that it is so much earlier."""
    return {
        "LD_PRELOAD": str(library()),
        "FAKETIME": f"-{seconds}s",
        "PYTHONPATH": str(WRONG_CLOCK),
        # how long something lasts is measured rightly even where the date is wrong
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def ahead(seconds: int) -> dict[str, str]:
    """Variables with which a process of Python believes that it is so much later."""
    return {"PYTHONPATH": str(WRONG_CLOCK), "CLOCK_AHEAD_S": str(seconds)}


def worker_off(wrong: Callable[[int], dict[str, str]], stage: Stage) -> float:
    """It governs: what needs a check, a grant and a revocation come out as with a right clock."""
    variables = wrong(HOUR_S)
    with sleeping(stage) as before:
        worker = stage.worker(None, **variables)
        began = time.monotonic()
        worker.wait_ready(TAKEOVER_S)
        recovery = stage.pulse(began)
        published = publish(stage)
        stage.kit.decided(published, 70)
        assert stage.kit.code(published) == "", stage.kit.decisions(published)
        application = stage.near.application("timely")
        request = stage.near.request(stage.copied.product, application.name)
        stage.owner.grant(stage.copied.product, request)
        assert isinstance(application.read(stage.copied.topic), list), "the grant is not applied"
        stage.owner.revoke(stage.copied.product, request)
        stage.forbid(application, stage.copied.topic, "one revoked by a worker with a wrong clock")
        worker.stop()
    awake(stage, before)
    return recovery


def emitters_off(stage: Stage) -> None:
    """Too early and too late are refused with their codes; some minutes are nobody's fault."""
    assert outcome(stage, speak(stage, behind(HOUR_S + 60))) == "stale_intent"
    assert outcome(stage, speak(stage, behind(240))) == ""
    assert outcome(stage, speak(stage, {}, HOUR_S)) == "clock_ahead"
    assert outcome(stage, speak(stage, {}, 240)) == ""


def outcome(stage: Stage, offset: int) -> str:
    """The code with which it was refused, "" where it was accepted."""
    stage.kit.decided(offset, 30)
    return stage.kit.code(offset)


def speak(stage: Stage, variables: dict[str, str], ahead_s: int = 0) -> int:
    """Offset of an intent that a process with a wrong clock emits for the owner."""
    path = key_path(stage.home, stage.owner.name)
    if not path.exists():
        stage.owner.key.save(path)
    who = (stage.owner.name, stage.pulse_product)
    environment = {name: value for name, value in os.environ.items() if "SDM_" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.run.speak", *who, str(ahead_s)],
        cwd=REPOSITORY,
        env={**environment, **variables, "SDM_HOME": str(stage.home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-800:]
    return int(done.stdout)


FAULTS = (
    Fault(
        "worker-clock-ahead",
        "the worker that governs is an hour ahead",
        partial(worker_off, ahead),
        all_is_right,
    ),
    Fault(
        "worker-clock-behind",
        "the worker that governs is an hour behind",
        partial(worker_off, behind),
        all_is_right,
    ),
    Fault(
        "emitter-clocks",
        "who speaks has a clock an hour off",
        emitters_off,
        all_is_right,
    ),
)
