"""Rights that controllers give to what runs: links, statements and connectors. Pure."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from processors.clusters.principals import connector_of, flow_of
from processors.clusters.rights import Acl
from processors.connect.principals import PRINCIPALS, offsets_of
from projections.connectors.state import Connector
from projections.image import Image
from projections.links import Desired, Link
from projections.statements import Statement

_READS = frozenset({"read", "describe", "describe-configs"})
_WRITES = _READS | {"write", "create"}
"""What a job may do with what it reads, and with what it fills; no controller gives it more."""


class Known(Protocol):
    """The starts that are under way."""

    def has(self, flow: str, principal: str) -> bool:
        """Whether a principal is one of a flow's starts."""


class _Ends(NamedTuple):
    """The topics of a connector: finding them in its config costs more than all the rest."""

    reads: frozenset[str]
    writes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Running:
    """What runs on a cluster, as the log says, and what is just being started; for one look.

    starts: those of this process. Without, the principal of a flow that the log does not call
        active is believed by its name: somebody else may be starting it.
    """

    image: Image
    cluster: str
    starts: Known | None = None
    _ends: dict[str, _Ends] = field(default_factory=dict, compare=False)

    def explain(self, acl: Acl) -> bool:
        """Whether an ACL is one that a controller gives to what runs: it looks after it, too."""
        if acl.binding() is None:
            return False
        if (connector := self._connector(acl.principal)) is not None:
            return _is_connectors(acl, connector, self._ends_of(connector))
        flow = flow_of(self.image, acl.principal)
        if acl.prefixed or flow is None or not self._writes_as(flow, acl.principal):
            return False
        match acl.resource:
            case "topic":
                reads = flow.source_cluster == self.cluster and acl.name in flow.reads
                writes = flow.cluster == self.cluster and acl.name in flow.writes
                return (reads and acl.operation in _READS) or (writes and acl.operation in _WRITES)
            case "group":
                return acl.name == acl.principal
            case "transactional-id":
                # before it stands the group of the Connect workers, which the log does not know
                return acl.name.endswith(f"-{acl.principal}-0")
        return False

    def owns(self, principal: str) -> bool:
        """Whether a principal is called like one that the mesh makes for what runs, or ran."""
        return flow_of(self.image, principal) is not None or principal.startswith(PRINCIPALS)

    def _writes_as(self, flow: Link | Statement, principal: str) -> bool:
        """Whether the last start on the log had the principal, or one that is under way has it."""
        if principal == flow.principal:
            return True
        if self.starts is not None:
            return self.starts.has(flow.id, principal)
        return flow.desired is Desired.RUNNING and not flow.is_active

    def _ends_of(self, connector: Connector) -> _Ends:
        if (known := self._ends.get(connector.id)) is None:
            known = _Ends(frozenset(connector.reads), frozenset(connector.writes))
            self._ends[connector.id] = known
        return known

    def _connector(self, principal: str) -> Connector | None:
        found = connector_of(self.image, principal)
        if found is None or found.cluster != self.cluster:
            return None
        return found if found.desired is Desired.RUNNING else None


def _is_connectors(acl: Acl, connector: Connector, ends: _Ends) -> bool:
    match acl.resource:
        case "topic" if acl.prefixed:
            domains = acl.name == f"{connector.domain}." and acl.operation in _WRITES
            return domains and not connector.is_sink
        case "topic":
            # a sink's positions are those of its group
            offsets = not connector.is_sink and acl.name == offsets_of(connector.domain)
            if (offsets or acl.name in ends.writes) and acl.operation in _WRITES:
                return True
            return acl.name in ends.reads and acl.operation in _READS
        case "group":
            return connector.is_sink and acl.name == f"connect-{connector.id}" and not acl.prefixed
        case "transactional-id":
            own = rf".+-{re.escape(connector.id)}-\d+"
            return not acl.prefixed and re.fullmatch(own, acl.name) is not None
    return False
