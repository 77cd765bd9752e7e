"""A generator of made-up records, in a process of its own."""

import sys

from local_platform import generators
from local_platform.errors import NotReadyError
from local_platform.services.base import Command, Outcome, Service
from local_platform.site import Site


class GeneratorService(Service):
    """Writes into a topic until its count is reached, or it is stopped.

    Its domain's login comes from the home, so that nothing secret is on its command line.
    """

    on_demand = True
    after = ("kafka-east", "kafka-west", "registry")

    def __init__(self, site: Site, generator: str) -> None:
        super().__init__(site)
        self.generator = generator
        self.name = generators.service_name(generator)

    def command(self) -> Command:
        """Return its process; raises PlatformError where its description cannot be read."""
        found = generators.read(self.site.layout, self.generator)
        argv = (sys.executable, "-m", "self_service.cli.generate.job", self.generator)
        # whoever ran `sdm up` may have chosen another domain
        environment = {**self.site.settings.environment(), "SDM_DOMAIN": found.domain}
        return Command(argv, self.data, environment, inherits=True)

    def probe(self) -> None:
        """Look whether it has found its place on the topic."""
        if not (self.scratch / generators.WRITING).exists():
            raise NotReadyError(f"{self.name}: it looks for its place on the topic")

    def outcome(self, code: int) -> Outcome | None:
        """It is done with its last record, and failed where another start would fail alike."""
        if code == 0:
            return Outcome(is_well=True, detail="done")
        if code == generators.GIVEN_UP:
            reached = generators.progress(self.site.layout, self.generator)
            return Outcome(is_well=False, detail=reached.error)
        return None
