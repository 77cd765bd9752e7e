"""ACLs of a cluster by confluent-kafka, and by `wire` those that it has no name for."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from processors.acls.codes import USER
from processors.clusters.rights import Acl, Binding, Resource

_RESOURCES = {
    Resource.TOPIC.value: ResourceType.TOPIC,
    Resource.GROUP.value: ResourceType.GROUP,
    Resource.TRANSACTIONAL_ID.value: ResourceType.TRANSACTIONAL_ID,
    Resource.CLUSTER.value: ResourceType.BROKER,
}
_NAMES = {theirs: ours for ours, theirs in _RESOURCES.items()}
_OPERATIONS = {
    one.name.lower().replace("_", "-"): one
    for one in AclOperation
    if one not in (AclOperation.UNKNOWN, AclOperation.ANY)
}


def every(principal: str | None) -> AclBindingFilter:
    """The filter of every ACL of a user, or of all."""
    return AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        _user(principal),
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def allowing(principal: str | None, topic: str | None) -> AclBindingFilter:
    """The filter of what a principal may do, or what is allowed on a literal topic, or both."""
    return AclBindingFilter(
        ResourceType.ANY if topic is None else ResourceType.TOPIC,
        topic,
        ResourcePatternType.ANY if topic is None else ResourcePatternType.LITERAL,
        _user(principal),
        None,
        AclOperation.ANY,
        AclPermissionType.ALLOW,
    )


def granting(binding: Binding) -> AclBinding:
    """The ACL that makes a right."""
    return _as(AclBinding, Acl.of(binding))


def deleting(acl: Acl) -> AclBindingFilter:
    """The filter that an ACL of a user alone passes."""
    return _as(AclBindingFilter, acl)


def is_named(acl: Acl) -> bool:
    """Whether confluent-kafka knows this kind of resource and operation."""
    return acl.resource in _RESOURCES and acl.operation in _OPERATIONS


def is_unknown(acls: Iterable[AclBinding]) -> bool:
    """Whether some of the listed ACLs are shown without their resource or operation."""
    return any(
        acl.restype is ResourceType.UNKNOWN or acl.operation is AclOperation.UNKNOWN for acl in acls
    )


def of_kafka(acl: AclBinding) -> Acl:
    """Our value of an ACL; what confluent-kafka does not know is `unknown`."""
    return Acl(
        acl.principal.removeprefix(USER),
        acl.operation.name.lower().replace("_", "-"),
        _NAMES.get(acl.restype, acl.restype.name.lower().replace("_", "-")),
        acl.name,
        acl.resource_pattern_type is ResourcePatternType.PREFIXED,
        acl.host,
        acl.permission_type is AclPermissionType.DENY,
    )


def _user(principal: str | None) -> str | None:
    return None if principal is None else f"{USER}{principal}"


def _as(kind: Any, acl: Acl) -> Any:
    return kind(
        _RESOURCES[acl.resource],
        acl.name,
        ResourcePatternType.PREFIXED if acl.prefixed else ResourcePatternType.LITERAL,
        f"{USER}{acl.principal}",
        acl.host,
        _OPERATIONS[acl.operation],
        AclPermissionType.DENY if acl.denies else AclPermissionType.ALLOW,
    )
