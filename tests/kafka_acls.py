"""ACLs that an administrator makes and takes away, of any kind and without a word on the log."""

from typing import Any

from aiokafka.protocol.admin import CreateAclsRequest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from mesh_events.kafka.connection import Connection
from mesh_events.kafka.requests import send
from processors.acls import codes, kafka, wire
from processors.clusters.rights import Acl

_TIMEOUT_S = 15


_RESOURCES = {"cluster": ResourceType.BROKER}


def made(login: Connection, acl: Acl) -> None:
    """Make one ACL."""
    if not kafka.is_named(acl):
        _made_by_wire(login, acl)
        return
    # held: a client that is collected fails what it was asked for
    admin = AdminClient(login.config())
    binding = _kafka(acl, AclBinding)
    admin.create_acls([binding])[binding].result(15)


def unmade(login: Connection, acl: Acl) -> int:
    """Take one ACL away; how many there were."""
    if not kafka.is_named(acl):
        wire.delete(login, [acl], "deleting an ACL", _TIMEOUT_S)
        return 1
    admin = AdminClient(login.config())
    wanted = _kafka(acl, AclBindingFilter)
    return len(admin.delete_acls([wanted])[wanted].result(15))


def _made_by_wire(login: Connection, acl: Acl) -> None:
    """One of a kind that confluent-kafka cannot make."""
    resources = {name: code for code, name in codes.RESOURCES.items()}
    operations = {name: code for code, name in codes.OPERATIONS.items()}
    request = CreateAclsRequest(
        resources[acl.resource],
        acl.name,
        codes.PREFIXED if acl.prefixed else codes.LITERAL,
        f"User:{acl.principal}",
        acl.host,
        operations[acl.operation],
        codes.DENY if acl.denies else codes.ALLOW,
    )
    [answer] = send(login, [request], "creating an ACL", _TIMEOUT_S)
    assert not answer.creation_responses[0][0], answer


def _kafka(acl: Acl, kind: Any) -> Any:
    return kind(
        _RESOURCES.get(acl.resource) or ResourceType[acl.resource.upper().replace("-", "_")],
        acl.name,
        ResourcePatternType.PREFIXED if acl.prefixed else ResourcePatternType.LITERAL,
        f"User:{acl.principal}",
        acl.host,
        AclOperation[acl.operation.upper().replace("-", "_")],
        AclPermissionType.DENY if acl.denies else AclPermissionType.ALLOW,
    )
