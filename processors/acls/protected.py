"""What on a cluster belongs to the mesh, and which ACLs touch it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from processors.clusters.rights import EVERYBODY, Acl

HARMFUL = {
    "topic": frozenset({"all", "read", "write", "create", "alter", "alter-configs", "delete"}),
    "group": frozenset({"all", "read", "delete", "alter-configs"}),
    "transactional-id": frozenset({"all", "write", "two-phase-commit"}),
    "cluster": frozenset({"all", "alter", "alter-configs", "cluster-action", "create"}),
    "delegation-token": frozenset({"all", "describe"}),
    "user": frozenset({"all", "create-tokens", "describe-tokens"}),
}
"""Resource -> operations that read or change it, or that lead to a right or a login.

A group: its partitions and offsets. A transactional id: its producer is fenced. The cluster: its
ACLs, logins and settings, and topics of any name. A delegation token, or the user of one: who sees
or makes it can log in as its owner.
"""
UNUSED = frozenset({"cluster", "delegation-token", "user"})
"""Resources on which no login that the mesh makes needs a right, whatever the operation."""
PATTERNED = frozenset({"group", "transactional-id"})
"""Resources that are the mesh's by the rights of its principals on them."""
_USER = "User:"
_MESH = "mesh."


@dataclass(frozen=True, slots=True)
class Protected:
    """What of one cluster belongs to the mesh.

    Args:
        topics: names.
        patterns: rights of the mesh's principals on groups and transactional ids.
        users: principals of the mesh, without `User:`; those below `mesh.` are among them anyway.
    """

    topics: frozenset[str]
    patterns: tuple[Acl, ...]
    users: frozenset[str]

    def touched(self, acl: Acl) -> frozenset[str]:
        """Those of the topics that an ACL is about."""
        if acl.resource != "topic":
            return frozenset()
        if not acl.prefixed and acl.name != EVERYBODY:
            return self.topics & {acl.name}
        return frozenset(topic for topic in self.topics if acl.covers(topic))

    def is_about(self, acl: Acl) -> bool:
        """Whether an ACL is about something of the mesh, whatever the operation.

        The cluster always is. Kafka does not show whose a delegation token is.
        """
        if acl.resource == "topic":
            return bool(self.touched(acl))
        if acl.resource in PATTERNED:
            return any(overlap(acl, one) for one in self._of(acl))
        if acl.resource == "user":
            return self._is_about_user(acl)
        return True

    def holds(self, acl: Acl) -> bool:
        """Whether an ACL is about nothing else."""
        if acl.resource == "topic":
            return not acl.prefixed and acl.name in self.topics
        if acl.resource in PATTERNED:
            return any(within(acl, one) for one in self._of(acl))
        return acl.name != EVERYBODY and not acl.prefixed

    def _of(self, acl: Acl) -> Iterable[Acl]:
        return (one for one in self.patterns if one.resource == acl.resource)

    def _is_about_user(self, acl: Acl) -> bool:
        inside = acl.name.startswith(f"{_USER}{_MESH}") or acl.covers(f"{_USER}{_MESH}")
        return inside or any(acl.covers(f"{_USER}{name}") for name in self.users)


def overlap(one: Acl, other: Acl) -> bool:
    """Whether some name is matched by both; resources are the same."""
    if one.prefixed and other.prefixed:
        return one.name.startswith(other.name) or other.name.startswith(one.name)
    return one.covers(other.name) or other.covers(one.name)


def within(acl: Acl, right: Acl) -> bool:
    """Whether every name that an ACL matches is matched by a right; resources are the same."""
    if acl.prefixed:
        return right.prefixed and right.covers(acl.name)
    return right.covers(acl.name) and (acl.name != EVERYBODY or not right.prefixed)
