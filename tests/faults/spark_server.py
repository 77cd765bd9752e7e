"""A Spark Connect server of a test's own, to be killed as often as it likes."""

import shutil
import signal
import subprocess
from dataclasses import dataclass, replace

from local_platform.services.spark import SparkConnect
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from local_platform.supervision.process import Identity, spawn, stop_group

LIFETIME_S = 1200


@dataclass
class SparkServer:
    """Started and killed by its own process id; nobody restarts it but the test."""

    settings: PlatformSettings

    def __post_init__(self) -> None:
        self.site = Site.of(self.settings)
        self.site.make_folders()
        self.service = SparkConnect(self.site)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def remote(self) -> str:
        return self.service.remote

    @property
    def token(self) -> str:
        return self.site.credentials.password("spark", "token")

    def start(self) -> None:
        """Start it; whoever calls it has to wait until it answers."""
        self.service.prepare()
        log, command = self.site.layout.log("spark"), self.service.command()
        # it lives for seconds: what the better compiler costs never pays
        quick = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
        command = replace(
            command,
            # a run that is killed cannot end it; then it ends by itself
            argv=("timeout", "--signal=KILL", str(LIFETIME_S), *command.argv),
            environment={**command.environment, **quick},
        )
        self._process = spawn(command, "spark", self.settings.home, log)

    def kill(self) -> None:
        """End it as `kill -9` does."""
        assert self._process is not None
        leader = Identity.of(self._process.pid)
        assert leader is not None
        stop_group(leader, signal.SIGKILL, 10)
        self._process.wait(10)

    def remove(self) -> None:
        """End it and leave nothing behind."""
        self.kill()
        shutil.rmtree(self.settings.home)
