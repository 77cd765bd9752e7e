"""As whom connectors read and write: a principal for each, which never changes."""

PRINCIPALS = "mesh.connect."
OFFSETS = "connect-offsets"
"""A domain's topic of the positions of its sources, below its prefix."""


def principal_of(connector: str) -> str:
    """The principal of a connector, by its id."""
    return f"{PRINCIPALS}{connector}"
