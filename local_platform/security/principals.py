"""The platform's own Kafka principals: their credentials and the narrowest rights that work.

`registry` and `connect` live on the east cluster, and the west's own registry, if any, on the west.
Rights of domains, applications and links are no matter of the platform: the mesh's controllers
grant those.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from local_platform.endpoints import CONNECT_GROUP
from local_platform.errors import NotReadyError
from mesh_events.kafka.connection import Connection
from processors.connect.principals import group_of

_TIMEOUT_S = 5
_NO_TOPIC = "mesh.never-created"
_ANSWERS = frozenset({KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.POLICY_VIOLATION})
"""Of the controller, which is there then."""


@dataclass(frozen=True)
class Right:
    """One allowing ACL: operation, kind of resource, its name; a prefix ends in a delimiter."""

    operation: str
    resource: str
    name: str
    prefixed: bool = False


@dataclass(frozen=True)
class Principal:
    """A Kafka user with its password and rights."""

    name: str
    password: str
    rights: tuple[Right, ...]


REGISTRY_RIGHTS = (
    Right("ALL", "TOPIC", "kafkasql-", prefixed=True),
    Right("ALL", "TOPIC", "registry-", prefixed=True),
    Right("ALL", "GROUP", "apicurio-", prefixed=True),
    Right("DESCRIBE", "BROKER", "kafka-cluster"),
)

CONNECT_RIGHTS = (
    # what the worker keeps for itself; a connector works with a login of its own
    Right("ALL", "TOPIC", "connect-configs"),
    Right("ALL", "TOPIC", "connect-offsets"),
    Right("ALL", "TOPIC", "connect-status"),
    Right("ALL", "GROUP", CONNECT_GROUP),
    Right("ALL", "TRANSACTIONAL_ID", f"connect-cluster-{CONNECT_GROUP}"),
    # the same of the workers that domains have of their own
    Right("ALL", "TOPIC", "connect-configs.", prefixed=True),
    Right("ALL", "TOPIC", "connect-worker-offsets.", prefixed=True),
    Right("ALL", "TOPIC", "connect-status.", prefixed=True),
    Right("ALL", "GROUP", group_of(""), prefixed=True),
    Right("ALL", "TRANSACTIONAL_ID", f"connect-cluster-{group_of('')}", prefixed=True),
)


def principals_of(
    cluster: str, password: Callable[[str, str], str], *, registry: bool = False
) -> tuple[Principal, ...]:
    """Return the platform's principals on a cluster.

    Args:
        cluster: its name.
        password: gives the password of (cluster, principal).
        registry: whether the cluster has a registry of its own; east always has the mesh's.
    """
    if cluster != "east":
        if not registry:
            return ()
        return (Principal("registry", password(cluster, "registry"), REGISTRY_RIGHTS),)
    return (
        Principal("registry", password("east", "registry"), REGISTRY_RIGHTS),
        Principal("connect", password("east", "connect"), CONNECT_RIGHTS),
    )


def ensure_principals(login: Connection, wanted: Iterable[Principal]) -> None:
    """Sign in as the super user, describe the cluster, and make the principals; repeatable.

    login: the super user's

    Raises:
        NotReadyError: the cluster does not answer yet.
    """
    admin = AdminClient(login.config(socket_timeout_ms=_TIMEOUT_S * 1000))
    try:
        nodes = admin.describe_cluster(request_timeout=_TIMEOUT_S).result(_TIMEOUT_S).nodes
        if not nodes:
            raise NotReadyError("the cluster has no broker yet")
        admin.list_topics(timeout=_TIMEOUT_S)
        for principal in wanted:
            _ensure(admin, principal)
    except (KafkaException, TimeoutError) as fault:
        raise NotReadyError(f"Kafka at {login.bootstrap_servers}: {fault}") from fault


class Asking:
    """Asks a cluster for answers by one client, which keeps its connections.

    One that connects anew may be refused, or wait, because of what others do that connect; that the
    broker does its work it still does. So a new client counts only where the kept one gets none.
    """

    def __init__(self, login: Callable[[], Connection]) -> None:
        """login: gives the super user's."""
        self._login = login
        self._kept: Any = None

    def require_answer(self, timeout_s: float) -> None:
        """Have a broker name its cluster's brokers, and the controller validate a new topic.

        Args:
            timeout_s: of each client, of which there may be two.

        Raises:
            NotReadyError: no answer, or no broker that is in use.
        """
        login = self._login()
        if self._kept is not None:
            try:
                _require_answer(self._kept, login, timeout_s)
            except NotReadyError:
                self._kept = None
            else:
                return
        made = AdminClient(login.config(socket_timeout_ms=int(timeout_s * 1000)))
        _require_answer(made, login, timeout_s)
        self._kept = made


def _require_answer(admin: Any, login: Connection, timeout_s: float) -> None:
    try:
        if not admin.list_topics(timeout=timeout_s).brokers:
            raise NotReadyError(f"Kafka at {login.bootstrap_servers}: no broker is in use")
        [made] = admin.create_topics(
            [NewTopic(_NO_TOPIC, 1, 1)], validate_only=True, request_timeout=timeout_s
        ).values()
        refusal = made.exception(timeout_s)
        if refusal is not None and not _is_answer(refusal):
            raise refusal
    except (KafkaException, TimeoutError) as fault:
        raise NotReadyError(f"Kafka at {login.bootstrap_servers}: {fault}") from fault


def _is_answer(fault: BaseException) -> bool:
    return isinstance(fault, KafkaException) and fault.args[0].code() in _ANSWERS


def _ensure(admin: Any, principal: Principal) -> None:
    """Set the password and exactly the rights: what an earlier version gave goes."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    upsertion = UserScramCredentialUpsertion(principal.name, info, principal.password.encode())
    wanted = {_binding(principal.name, right) for right in principal.rights}
    described = admin.describe_acls(of_principal(principal.name), request_timeout=_TIMEOUT_S)
    held = set(described.result(_TIMEOUT_S))
    answers = [
        *admin.alter_user_scram_credentials([upsertion], request_timeout=_TIMEOUT_S).values(),
        *_changed(admin.create_acls, wanted - held),
        *_changed(admin.delete_acls, {_itself(acl) for acl in held - wanted}),
    ]
    for answer in answers:
        answer.result(_TIMEOUT_S)


def _changed(call: Any, acls: set[Any]) -> Iterable[Any]:
    """Call for some ACLs, which Kafka refuses to do for none; return the answers to wait for."""
    return call(list(acls), request_timeout=_TIMEOUT_S).values() if acls else ()


def _binding(principal: str, right: Right) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if right.prefixed else ResourcePatternType.LITERAL
    return AclBinding(
        ResourceType[right.resource],
        right.name,
        pattern,
        f"User:{principal}",
        "*",
        AclOperation[right.operation],
        AclPermissionType.ALLOW,
    )


def of_principal(name: str) -> AclBindingFilter:
    """Return the filter that every ACL of a principal passes."""
    return AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        f"User:{name}",
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )


def _itself(acl: AclBinding) -> AclBindingFilter:
    """Return the filter that an ACL alone passes."""
    return AclBindingFilter(
        acl.restype,
        acl.name,
        acl.resource_pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
