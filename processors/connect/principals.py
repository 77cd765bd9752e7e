"""As whom connectors read and write: a principal for each, which never changes."""

PRINCIPALS = "mesh.connect."
_OFFSETS = "connect-offsets."


def principal_of(connector: str) -> str:
    """The principal of a connector, by its id."""
    return f"{PRINCIPALS}{connector}"


def group_of(domain: str) -> str:
    """The group of a domain's own Connect workers; no domain is called `connect`."""
    return f"connect.{domain}"


def offsets_of(domain: str) -> str:
    """The topic of the positions of a domain's sources, at the domain's cluster.

    It is not below the domain's prefix: Connect keeps in memory what is there, and the domain's
    own login would fill it.
    """
    return f"{_OFFSETS}{domain}"
