"""Access rights as values: one allowing ACL binding, written and read the same way everywhere."""

from dataclasses import dataclass
from enum import StrEnum


class Resource(StrEnum):
    """What a binding is about."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"


class Operation(StrEnum):
    """What a binding allows; names as Kafka has them."""

    ALL = "all"
    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    ALTER = "alter"
    DESCRIBE = "describe"
    DESCRIBE_CONFIGS = "describe-configs"


@dataclass(frozen=True, slots=True, order=True)
class Binding:
    """`principal` may do `operation` on `resource` `name`, from any host.

    With `prefixed` the name is a prefix and ends in a delimiter, so that `east.` never covers
    `east2.orders`.
    """

    principal: str
    operation: Operation
    resource: Resource
    name: str
    prefixed: bool = False

    def __post_init__(self) -> None:
        if self.prefixed and not self.name.endswith((".", "-", "_")):
            raise ValueError(f"the prefix {self.name!r} must end in a delimiter")

    def __str__(self) -> str:
        star = "*" if self.prefixed else ""
        return f"{self.principal} {self.operation} {self.resource} {self.name}{star}"


def reader(principal: str, topic: str) -> frozenset[Binding]:
    """What an application needs to read one topic with its own consumer groups."""
    return frozenset(
        {
            Binding(principal, Operation.READ, Resource.TOPIC, topic),
            Binding(principal, Operation.DESCRIBE, Resource.TOPIC, topic),
        }
    )
