"""ACLs in Kafka's own protocol: every kind of resource and operation, also those to come.

confluent-kafka 2.16 shows rights on delegation tokens and users, and operations since 2021, as
unknown, and cannot delete them.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from aiokafka.protocol.admin import DeleteAclsRequest, DescribeAclsRequest

from mesh_events.errors import InfrastructureError
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.requests import reading, send
from processors.acls.codes import ALLOW, ANY, DENY, LITERAL, OPERATIONS, PREFIXED, RESOURCES, USER
from processors.clusters.rights import Acl


def listed(login: Connection, doing: str, timeout_s: float) -> set[Acl]:
    """Every ACL of a cluster; what this version has no name for is `resource-9`, `operation-20`."""
    request = DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY)
    [answer] = send(login, [request], doing, timeout_s)
    _require(answer.error_code, answer.error_message, doing)
    with reading(doing):
        return set(_acls(answer.resources))


def delete(login: Connection, acls: Iterable[Acl], doing: str, timeout_s: float) -> None:
    """Delete ACLs; those that are gone are fine."""
    answers = send(login, [_deletion(acl) for acl in acls], doing, timeout_s)
    with reading(doing):
        for answer in answers:
            for code, text, *_ in answer.filter_responses:
                _require(code, text, doing)


def _acls(resources: Iterable[Any]) -> Iterator[Acl]:
    for resource, name, pattern, acls in resources:
        for principal, host, operation, permission in acls:
            yield Acl(
                principal.removeprefix(USER),
                OPERATIONS.get(operation, f"operation-{operation}"),
                RESOURCES.get(resource, f"resource-{resource}"),
                name,
                pattern == PREFIXED,
                host,
                permission == DENY,
            )


def _deletion(acl: Acl) -> DeleteAclsRequest:
    """The request that deletes one ACL of a user."""
    return DeleteAclsRequest(
        _code(RESOURCES, acl.resource),
        acl.name,
        PREFIXED if acl.prefixed else LITERAL,
        f"{USER}{acl.principal}",
        acl.host,
        _code(OPERATIONS, acl.operation),
        DENY if acl.denies else ALLOW,
    )


def _code(codes: dict[int, str], name: str) -> int:
    by_name = {known: code for code, known in codes.items()}
    return by_name[name] if name in by_name else int(name.rpartition("-")[2])


def _require(code: int, text: str | None, doing: str) -> None:
    if code:
        raise InfrastructureError(f"{doing}: {text} (error {code})", retriable=True)
