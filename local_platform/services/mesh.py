"""The mesh's own processes: the founding (once) and the governor."""

import sys

import requests

from local_platform.errors import NotReadyError
from local_platform.services.base import Command, Service


class Founding(Service):
    """Makes the mesh's topics, keys and first records; does nothing the second time."""

    name = "found"
    after = ("kafka-east", "kafka-west", "registry")
    once = True

    def command(self) -> Command:
        """Return the job's process."""
        argv = (sys.executable, "-m", "processors.founding")
        # settings and references name variables
        return Command(argv, self.data, self.site.settings.environment(), inherits=True)

    def probe(self) -> None:
        """A job is ready when it ended with 0, which the supervisor sees by itself."""


class Governor(Service):
    """Decides intents and keeps the world as decided."""

    name = "governor"
    after = ("found", "kafka-east", "kafka-west", "registry")
    listeners = ("governor",)
    # it does not answer while it folds a long log, and begins anew after a restart
    is_restarted = False

    def command(self) -> Command:
        """Return the worker's process."""
        argv = (sys.executable, "-m", "processors")
        # settings and references name variables
        return Command(argv, self.data, self.site.settings.environment(), inherits=True)

    def probe(self) -> None:
        """Ask the worker whether it has folded the log to its end."""
        url = f"http://{self.site.address('governor')}/ready"
        try:
            answer = requests.get(url, timeout=5)
        except requests.RequestException as fault:
            raise NotReadyError(f"governor: {type(fault).__name__}") from fault
        if answer.status_code != requests.codes.ok:
            raise NotReadyError(f"governor: /ready answered {answer.status_code}")

    def check(self) -> None:
        """Ask the worker for any answer: it shows by itself what it waits for."""
        try:
            requests.get(f"http://{self.site.address('governor')}/ready", timeout=12)
        except requests.RequestException as fault:
            raise NotReadyError(f"governor: {type(fault).__name__}") from fault
