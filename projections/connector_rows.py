"""What makes a capturing connector stop at a change that does not hold the whole row. Pure.

The transformation is the mesh's own; domains can neither name it nor leave it out.
"""

import hashlib
from collections.abc import Mapping

EVENT_ROUTER = "io.debezium.transforms.outbox.EventRouter"
WHOLE_ROWS = "mesh.WholeRows"
"""The transformation's class."""
NAME = "_whole"
"""No transform of a domain may begin with _."""
PLACEHOLDER = "unavailable.value.placeholder"


def routes_outbox(config: Mapping[str, str]) -> bool:
    """Whether every record passes an outbox's router, which reads inserted rows and nothing else.

    With a predicate it need not be every one.
    """
    named = (f"transforms.{one.strip()}" for one in config.get("transforms", "").split(","))
    return any(
        config.get(f"{one}.type") == EVENT_ROUTER and f"{one}.predicate" not in config
        for one in named
    )


def with_whole_rows(connector: str, config: Mapping[str, str]) -> dict[str, str]:
    """The config of a capturing connector that fails at incomplete rows and at TRUNCATE.

    Args:
        connector: its id.
        config: as Debezium is to have it; one that names `skipped.operations` keeps it.
    """
    if routes_outbox(config):
        return dict(config)
    placeholder = config.get(PLACEHOLDER, _placeholder(connector))
    others = config.get("transforms", "")
    return {
        # TRUNCATE arrives, so that the task can fail
        "skipped.operations": "none",
        **config,
        # a value that Debezium cannot convert would be null
        "event.converting.failure.handling.mode": "fail",
        PLACEHOLDER: placeholder,
        "transforms": f"{NAME},{others}" if others else NAME,
        f"transforms.{NAME}.type": WHOLE_ROWS,
        f"transforms.{NAME}.placeholder": placeholder,
    }


def _placeholder(connector: str) -> str:
    """A text that no row holds by chance."""
    return f"mesh_unavailable_{hashlib.sha256(connector.encode()).hexdigest()[:32]}"
