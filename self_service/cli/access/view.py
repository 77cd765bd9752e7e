"""A request and what became of it, as tables, JSON and YAML show it."""

from typing import Any

from projections.access import Access
from self_service.cli.framework.times import stamp
from self_service.cli.mesh import lookup

COLUMNS = ("number", "product", "application", "state", "requested_at", "reason")


def fields(access: Access) -> dict[str, Any]:
    """A request as lists show it."""
    return {
        "number": lookup.number(access),
        "request": access.request,
        "offset": access.offset,
        "product": access.product,
        "application": access.application,
        "state": access.state,
        "cluster": access.cluster,
        "topic": access.topic,
        "link": access.link,
        "reason": access.reason,
        "requested_by": access.requested_by,
        "requested_at": stamp(access.requested_at),
        "decided_by": access.decided_by,
        "decided_at": stamp(access.decided_at),
        "decision_reason": access.decision_reason,
        "on_revoke": access.on_revoke,
        "active_at": stamp(access.active_at),
        "revoked_by": access.revoked_by,
        "revoked_at": stamp(access.revoked_at),
        "revoke_reason": access.revoke_reason,
        "removed_at": stamp(access.removed_at),
        "generation": access.generation,
    }
