"""Access rights as values: what the mesh writes, what it wishes, and whatever a cluster holds."""

from dataclasses import dataclass
from enum import StrEnum

EVERYBODY = "*"
"""Any principal, any host, and as the name of a resource any of its kind."""


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


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """Any ACL of a cluster, also those that the mesh would never write.

    Operation and resource are Kafka's names in the form of `Operation` and `Resource`; a principal
    is a user's name, `*` for everybody, or `<type>:<name>` for other kinds of principals.
    """

    principal: str
    operation: str
    resource: str
    name: str
    prefixed: bool = False
    host: str = "*"
    denies: bool = False

    @classmethod
    def of(cls, binding: Binding) -> "Acl":
        """A binding as the cluster lists it."""
        operation, resource = binding.operation.value, binding.resource.value
        return cls(binding.principal, operation, resource, binding.name, binding.prefixed)

    def covers(self, name: str) -> bool:
        """Whether it is about the resource of that name."""
        return name.startswith(self.name) if self.prefixed else self.name in (EVERYBODY, name)

    def binding(self) -> Binding | None:
        """The same as a value that the mesh can write and withdraw; None if it never writes so."""
        if self.denies or self.host != "*":
            return None
        try:
            operation, resource = Operation(self.operation), Resource(self.resource)
            return Binding(self.principal, operation, resource, self.name, self.prefixed)
        except ValueError:
            return None

    def __str__(self) -> str:
        star, host = "*" if self.prefixed else "", f" from {self.host}" if self.host != "*" else ""
        denies = "denied " if self.denies else ""
        return f"{self.principal} {denies}{self.operation} {self.resource} {self.name}{star}{host}"


@dataclass(frozen=True, slots=True)
class Wish:
    """Bindings of one subject on one cluster at one generation: wanted there, or wanted gone.

    `reported` tells whether the log says already that it is so. Whose statements and connectors
    may read by these bindings stands in `through`: what they hold by them alone goes with them.
    `unreported` is the generation of an earlier wish for them that nobody has reported: a worker
    may have fulfilled it just before it died.
    """

    subject: str
    cluster: str
    generation: int
    correlation: str
    principal: str
    bindings: frozenset[Binding]
    wanted: bool
    reported: bool
    through: str = ""
    unreported: int | None = None


def reader(principal: str, topic: str) -> frozenset[Binding]:
    """What an application needs to read one topic with its own consumer groups."""
    return frozenset(
        {
            Binding(principal, Operation.READ, Resource.TOPIC, topic),
            Binding(principal, Operation.DESCRIBE, Resource.TOPIC, topic),
        }
    )
