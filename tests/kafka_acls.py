"""ACLs that an administrator makes and takes away, of any kind and without a word on the log."""

from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from mesh_events.kafka import Connection
from processors.rights import Acl


def made(login: Connection, acl: Acl) -> None:
    """Make one ACL."""
    # held: a client that is collected fails what it was asked for
    admin = AdminClient(login.config())
    binding = _kafka(acl, AclBinding)
    admin.create_acls([binding])[binding].result(15)


def unmade(login: Connection, acl: Acl) -> int:
    """Take one ACL away; how many there were."""
    admin = AdminClient(login.config())
    wanted = _kafka(acl, AclBindingFilter)
    return len(admin.delete_acls([wanted])[wanted].result(15))


def _kafka(acl: Acl, kind: Any) -> Any:
    return kind(
        ResourceType[acl.resource.upper().replace("-", "_")],
        acl.name,
        ResourcePatternType.PREFIXED if acl.prefixed else ResourcePatternType.LITERAL,
        f"User:{acl.principal}",
        acl.host,
        AclOperation[acl.operation.upper().replace("-", "_")],
        AclPermissionType.DENY if acl.denies else AclPermissionType.ALLOW,
    )
