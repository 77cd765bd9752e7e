"""Rights that controllers give to what runs: links, statements and connectors. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from processors.connect.principals import PRINCIPALS, offsets_of, principal_of
from processors.rights import Acl
from projections.connectors import Connector
from projections.image import Image
from projections.links import Desired, Link
from projections.statements import Statement

_WRITER = re.compile(r"mesh\.(?:link|sql)\.(?P<flow>.+)\.[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Running:
    """What runs on a cluster: link or statement -> its topics there; principal -> connector."""

    flows: Mapping[str, frozenset[str]]
    connectors: Mapping[str, Connector]

    @classmethod
    def of(cls, image: Image, cluster: str) -> Self:
        """Those of an image."""
        flows: list[Link | Statement] = [*image.links.values(), *image.statements.values()]
        ends = {
            flow.id: frozenset(
                topic
                for place, topics in (
                    (flow.source_cluster, flow.reads),
                    (flow.cluster, flow.writes),
                )
                for topic in topics
                if place == cluster
            )
            for flow in flows
        }
        connectors = {
            principal_of(one.id): one
            for one in image.connectors.values()
            if one.cluster == cluster and one.desired is Desired.RUNNING
        }
        return cls(ends, connectors)

    def explain(self, acl: Acl) -> bool:
        """Whether an ACL is one that a controller gives to what runs: it looks after it, too."""
        if acl.binding() is None:
            return False
        if (connector := self.connectors.get(acl.principal)) is not None:
            return _is_connectors(acl, connector)
        flow = flow_of(acl.principal)
        if acl.prefixed or flow not in self.flows:
            return False
        match acl.resource:
            case "topic":
                return acl.name in self.flows[flow]
            case "group":
                return acl.name == acl.principal
            case "transactional-id":
                # before it stands the group of the Connect workers, which the log does not know
                return acl.name.endswith(f"-{acl.principal}-0")
        return False

    def owns(self, principal: str) -> bool:
        """Whether a principal is one that the mesh made for something that runs, or ran."""
        return flow_of(principal) in self.flows or principal.startswith(PRINCIPALS)


def flow_of(principal: str) -> str:
    """The link or statement that a principal writes for; empty for others."""
    writer = _WRITER.fullmatch(principal)
    return writer["flow"] if writer else ""


def _is_connectors(acl: Acl, connector: Connector) -> bool:
    match acl.resource:
        case "topic" if acl.prefixed:
            return not connector.is_sink and acl.name == f"{connector.domain}."
        case "topic":
            offsets = offsets_of(connector.domain)
            return acl.name in (*connector.reads, *connector.writes, offsets)
        case "group":
            return connector.is_sink and acl.name == f"connect-{connector.id}" and not acl.prefixed
        case "transactional-id":
            own = rf".+-{re.escape(connector.id)}-\d+"
            return not acl.prefixed and re.fullmatch(own, acl.name) is not None
    return False
