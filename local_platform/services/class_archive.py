"""The archive of Spark's classes, from which the domains' servers start sooner.

No domain's server writes it: what one leaves must not run in another. Until it exists, they start
without it.
"""

import sys

from local_platform.services.base import Command, Outcome, Service
from local_platform.services.spark import SparkConnect


class SparkClasses(Service):
    """Makes the archive once per cache, by a server that is ended when it is made."""

    name = "class-archive"
    after = ("governor",)
    listeners = SparkConnect.listeners
    once = True
    is_awaited = False

    def command(self) -> Command:
        """Return the job's process."""
        argv = (sys.executable, "-m", "local_platform.services.spark_classes")
        return Command(argv, self.data, self.site.settings.environment())

    def outcome(self, code: int) -> Outcome | None:
        """Servers start without the archive too, only later: a failure is told, and no more."""
        if code == 0:
            return super().outcome(code)
        return Outcome(is_well=True, detail=f"not made (see {self.site.layout.log(self.name)})")

    def probe(self) -> None:
        """A job is ready when it ended with 0, which the supervisor sees by itself."""
