"""Clocks an hour off: of the worker that governs, and of those who speak."""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from mesh_events.settings import key_path
from tests.faults.run.fault import Fault
from tests.faults.run.judge import all_is_right
from tests.faults.run.slow_registry import publish
from tests.faults.run.stage import Stage
from tests.faults.run.takeover import TAKEOVER_S, awake, sleeping
from tests.faults.worker import REPOSITORY

WRONG_CLOCK = Path(__file__).parent / "wrong_clock"
HOUR_S = 3600
EMITTED = ((-HOUR_S - 60, "stale_intent"), (-240, ""), (HOUR_S, "clock_ahead"), (240, ""))
"""How far the emitter's clock is off, in seconds -> code of the refusal, "" where accepted."""


def clock_off(seconds: int) -> dict[str, str]:
    """Variables with which a process of this project believes that it is so much later."""
    return {"PYTHONPATH": f"{WRONG_CLOCK}{os.pathsep}{REPOSITORY}", "CLOCK_OFF_S": str(seconds)}


def worker_off(seconds: int, stage: Stage) -> float:
    """It governs: what needs a check, a grant and a revocation come out as with a right clock."""
    with sleeping(stage) as before:
        worker = stage.worker(None, **clock_off(seconds))
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
    for seconds, code in EMITTED:
        offset = speak(stage, clock_off(seconds))
        stage.kit.decided(offset, 30)
        found = stage.kit.code(offset)
        assert found == code, f"an emitter {seconds} s off: {found!r}, not {code!r}"


def speak(stage: Stage, variables: dict[str, str]) -> int:
    """Offset of an intent that a process with a wrong clock emits for the owner."""
    path = key_path(stage.home, stage.owner.name)
    if not path.exists():
        stage.owner.key.save(path)
    who = (stage.owner.name, stage.pulse_product)
    environment = {name: value for name, value in os.environ.items() if "SDM_" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.run.speak", *who],
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
        partial(worker_off, HOUR_S),
        all_is_right,
    ),
    Fault(
        "worker-clock-behind",
        "the worker that governs is an hour behind",
        partial(worker_off, -HOUR_S),
        all_is_right,
    ),
    Fault(
        "emitter-clocks",
        "who speaks has a clock an hour off",
        emitters_off,
        all_is_right,
    ),
)
