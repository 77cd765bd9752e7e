"""How a generator is told of, and the limit on what may hang."""

import subprocess
import sys
from pathlib import Path

import pytest

from local_platform.generators import Progress
from local_platform.supervision.state import ServiceStatus, State
from self_service.cli.generate.generator import fields
from tests.unit.local_platform.test_generators import CLICKS

HANGS = """
import sys, threading
from self_service.cli.framework.watch import limited
with limited(float(sys.argv[1]), 75, lambda: print("hangs", flush=True)):
    threading.Event().wait(float(sys.argv[2]))
print("done")
"""


def status(state: State, since: float = 100.0) -> ServiceStatus:
    return ServiceStatus(
        name="generator-east.clicks", state=state, since=since, log=Path("x"), detail="seen"
    )


@pytest.mark.parametrize(
    ("reached", "found", "told"),
    [
        (Progress(next=7), status(State.READY), "writing"),
        (Progress(next=15), status(State.READY), "done"),
        (Progress(next=15), None, "done"),
        (Progress(next=7), None, "stopped"),
        (Progress(), status(State.STOPPED), "stopped"),
        (Progress(), status(State.STARTING), "starting"),
        (Progress(next=7), status(State.RESTARTING), "restarting"),
        (Progress(next=7), status(State.FAILED), "failed"),
    ],
)
def test_the_state_is_what_the_service_does_and_how_far_it_is(
    reached: Progress, found: ServiceStatus | None, told: str
) -> None:
    assert fields(CLICKS, reached, found)["state"] == told


def test_a_failure_is_told_in_its_own_words_but_an_old_one_is_not() -> None:
    own = Progress(next=7, error="no such topic", failed=99.0)
    assert fields(CLICKS, own, status(State.FAILED))["error"] == "no such topic"
    assert fields(CLICKS, own, status(State.FAILED, since=500.0))["error"] == "seen"
    assert fields(CLICKS, own, status(State.READY))["error"] == ""


@pytest.mark.parametrize(
    ("limit", "takes", "code", "said"), [(0.1, 60, 75, "hangs"), (60, 0, 0, "done")]
)
def test_what_hangs_is_ended_with_its_code(
    limit: float, takes: float, code: int, said: str
) -> None:
    argv = [sys.executable, "-c", HANGS, str(limit), str(takes)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout.strip()) == (code, said)
