"""The noun `sdm audit`, on which several modules put their commands."""

from self_service.cli.framework.options import noun

app = noun("Audit the governance log, the mesh's source of truth.")
