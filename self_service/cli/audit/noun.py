"""The noun `sdm audit`, on which several modules put their commands."""

from self_service.cli.framework.options import noun

app = noun("The audit: the log as the only truth.")
