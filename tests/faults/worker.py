"""A worker process under a test's control."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

REPOSITORY = Path(__file__).parents[2]
LIFETIME_S = 3600
"""A worker that its test forgot ends by itself."""
_PROGRAM = (
    "import runpy, signal; "
    f"signal.alarm({LIFETIME_S}); "
    "runpy.run_module('processors', run_name='__main__', alter_sys=True)"
)


@dataclass
class WorkerProcess:
    """`python -m processors`, started at once; `crash_at` is a named crash point.

    `more` are variables of its environment beside those that every worker here has.
    """

    home: Path
    port: int
    crash_at: str | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        environment = {name: value for name, value in os.environ.items() if "SDM_" not in name}
        environment |= {
            "SDM_HOME": str(self.home),
            "SDM_GOVERNOR_URL": f"http://127.0.0.1:{self.port}",
        }
        environment |= self.more
        if self.crash_at is not None:
            environment["SDM_CRASH_AT"] = self.crash_at
        self.log = self.home / "logs" / f"worker-{self.port}.log"
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM],
                cwd=REPOSITORY,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def describe(self) -> dict[str, Any] | None:
        """What the readiness page tells, None where nobody answers."""
        try:
            found = requests.get(f"http://127.0.0.1:{self.port}/ready", timeout=5).json()
        except requests.RequestException:
            return None
        return dict(found)

    def last_lines(self, count: int) -> str:
        """The end of what the workers on this port wrote."""
        lines = self.log.read_text("utf-8", errors="replace").splitlines()
        return "\n".join([f"exit code: {self.process.poll()}", *lines[-count:]])

    def wait_ready(self, seconds: float = 240) -> dict[str, Any]:
        """Wait until it governs."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the worker ended: {self.last_lines(12)}")
            found = self.describe()
            if found is not None and found["ready"]:
                return found
            time.sleep(0.05)
        raise AssertionError(f"not ready within {seconds:g} s: {self.last_lines(12)}")

    def wait_end(self, seconds: float = 240) -> int:
        """The exit code, or minus the signal that killed it."""
        return self.process.wait(seconds)

    def send(self, sign: signal.Signals) -> None:
        """Send a signal to exactly this process."""
        self.process.send_signal(sign)

    def stop(self) -> None:
        """Let it leave its group cleanly; kill it if it does not."""
        if self.process.poll() is None:
            self.send(signal.SIGCONT)
            self.send(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(15)
