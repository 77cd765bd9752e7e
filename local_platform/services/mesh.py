"""The mesh's own processes: the bootstrap (once) and the governor."""

import sys
from collections.abc import Mapping
from typing import Any

import requests

from local_platform.errors import NotReadyError
from local_platform.services.base import Command, Service


class Bootstrap(Service):
    """Makes the mesh's topics, keys and first records; does nothing the second time."""

    name = "bootstrap"
    after = ("kafka-east", "kafka-west", "registry")
    once = True

    def command(self) -> Command:
        """Return the job's process."""
        argv = (sys.executable, "-m", "processors.bootstrap")
        # settings and references name variables
        return Command(argv, self.data, self.site.settings.environment(), inherits=True)

    def probe(self) -> None:
        """A job is ready when it ended with 0, which the supervisor sees by itself."""


def readiness(address: str) -> dict[str, Any]:
    """What the worker at host:port tells of itself; raises NotReadyError where it tells nothing."""
    try:
        found = requests.get(f"http://{address}/ready", timeout=5).json()
    except requests.RequestException as fault:
        raise NotReadyError(f"governor: {type(fault).__name__}") from fault
    if not isinstance(found, dict):
        raise NotReadyError("governor: /ready answered with something else")
    return found


def stands_by(readiness: Mapping[str, Any]) -> bool:
    """Whether a worker that tells this of itself is well, and another one governs."""
    return readiness.get("standby") is True


class Governor(Service):
    """Decides intents and keeps the world as decided."""

    name = "governor"
    after = ("bootstrap", "kafka-east", "kafka-west", "registry")
    listeners = ("governor",)
    # it does not answer while it folds a long log, and begins anew after a restart
    is_restarted = False

    def command(self) -> Command:
        """Return the worker's process."""
        argv = (sys.executable, "-m", "processors")
        # settings and references name variables
        return Command(argv, self.data, self.site.settings.environment(), inherits=True)

    def probe(self) -> None:
        """Ask the worker whether it governs, or stands by while another one does."""
        found = readiness(self.site.address("governor"))
        if found.get("ready") is not True and not stands_by(found):
            raise NotReadyError("governor: /ready says that it is not ready")

    def check(self) -> None:
        """Ask the worker for any answer: it shows by itself what it waits for."""
        try:
            requests.get(f"http://{self.site.address('governor')}/ready", timeout=12)
        except requests.RequestException as fault:
            raise NotReadyError(f"governor: {type(fault).__name__}") from fault
