"""A running mesh as a test uses it: domains that speak, a log that is followed, any bytes at all.

    mesh = Mesh(endpoints, home)
    east = mesh.register_domain("shop")         # a fresh name, rights and login applied
    topic = east.topic("orders")                # with a registered schema
    outcome = mesh.outcome(east.publish("shop.orders", topic))
    mesh.wait_for(lambda image: ..., "the grant is active")

Every name that a test makes is fresh, so that tests share one mesh and run in any order.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from local_platform import Endpoints
from mesh_events import topics
from mesh_events.decisions import Decision, IntentAccepted
from mesh_events.emit import Emitter, Receipt
from mesh_events.intents import (
    AccessGranted,
    AccessRequested,
    AccessRevoked,
    ApplicationRegistered,
    CredentialsRequested,
    DomainRegistered,
    Intent,
    ProductPublished,
    intents_login,
)
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.partition_reader import PartitionReader
from mesh_events.read import LogReader, RowReader
from mesh_events.record import Entry, Record
from mesh_events.references import resolve
from mesh_events.rows import Row
from mesh_events.schema.registry import Registry
from mesh_events.settings import Profile, key_path
from mesh_events.signing import SigningKey
from projections.fold import apply
from projections.image import EMPTY, Image
from projections.replay import entry_of
from tests.kafka_client import (
    PATIENCE_S,
    RawProducer,
    eventually,
    fresh,
    login,
    read,
    reading,
    register_schema,
    write,
)

__all__ = [
    "Application",
    "Domain",
    "Mesh",
    "RawProducer",
    "eventually",
    "fresh",
    "publication",
    "read",
    "reading",
    "register_schema",
    "write",
]

AnyIntent = TypeVar("AnyIntent", bound=Intent)


class Mesh:
    """A founded mesh: its operator, its log as it stands, and its domains."""

    def __init__(self, endpoints: Endpoints, home: Path) -> None:
        self.endpoints, self.home = endpoints, home
        self.profile = Profile.load(home)
        self.registry = Registry(
            endpoints.registry_url, endpoints.registry_user, resolve(endpoints.registry_password)
        )
        self._image = EMPTY
        self.entries: dict[int, Entry] = {}
        self.records: dict[int, Record] = {}
        self.images: dict[int, Image] = {}
        self._followed: dict[str, PartitionReader] = {}

    @cached_property
    def operator(self) -> Emitter:
        """The operator's reporter."""
        return Emitter(
            self.login("mesh.operator"),
            self.registry,
            self.key("operator"),
            mesh=self.profile.keys,
            domain="mesh",
            actor="operator-1",
        )

    @cached_property
    def _row_reader(self) -> RowReader:
        return RowReader(self.login("mesh.operator"), self.registry, topics.CATALOG)

    @cached_property
    def _log(self) -> LogReader:
        return LogReader(self.login("mesh.operator"))

    def key(self, name: str) -> SigningKey:
        """One of the mesh's signing keys."""
        return SigningKey.load(key_path(self.home, name))

    def login(self, principal: str, cluster: str | None = None) -> Connection:
        """A principal's login, on the governance cluster by default."""
        place = cluster or self.profile.governance_cluster
        return login(self.endpoints, self.home, place, principal)

    def admin_login(self, cluster: str = "east") -> Connection:
        """The super user's login."""
        return self.endpoints.administration(cluster)

    @cached_property
    def raw(self) -> RawProducer:
        """Any bytes, written to the log as fast as it takes them; a domain's login may not."""
        return RawProducer(self.admin_login())

    def admin(self, cluster: str = "east") -> AdminClient:
        """The super user's admin client; hold it, since a collected one fails its futures."""
        return AdminClient(self.admin_login(cluster).config())

    def image(self) -> Image:
        """What the log says now, folded up to its end."""
        for record in self._log.to_end():
            self._take(record)
        return self._image

    def _take(self, record: Record) -> None:
        entry = entry_of(record, self._image)
        self._image = apply(self._image, entry)
        self.entries[record.offset], self.records[record.offset] = entry, record
        self.images[record.offset] = self._image

    def wait_for(
        self, condition: Callable[[Image], object], what: str, seconds: float = PATIENCE_S
    ) -> Image:
        """Follow the log until `condition` holds; fails with `what` after `seconds`."""
        deadline = time.monotonic() + seconds
        if condition(self.image()):
            return self._image
        while time.monotonic() < deadline:
            for record in self._log.follow(1.0):
                self._take(record)
                if condition(self._image):
                    return self._image
        raise AssertionError(f"not within {seconds:g} s: {what}")

    def decided(self, offset: int, seconds: float = PATIENCE_S) -> Decision:
        """The decision that counts on the record at `offset`, once it is there."""
        self.wait_for(
            lambda image: image.offset >= offset and not image.intents.is_open(offset),
            f"a decision on offset {offset}",
            seconds,
        )
        return self.decisions(offset)[0]

    def decisions(self, offset: int) -> list[Decision]:
        """Every decision on the record at `offset` that the governor's key has signed so far."""
        return [
            entry.event
            for entry in self.entries.values()
            if isinstance(entry.event, Decision)
            and entry.event.decides(offset)
            and entry.signer == self.profile.governor_key
        ]

    def accepted(self, receipt: Receipt) -> IntentAccepted:
        """The acceptance of what was just said; anything else fails the test."""
        found = self.decided(receipt.offset)
        assert isinstance(found, IntentAccepted), found
        return found

    def code(self, receipt: Receipt | int) -> str:
        """The refusal's or quarantine's code, "" for an acceptance."""
        found = self.decided(receipt if isinstance(receipt, int) else receipt.offset)
        return "" if isinstance(found, IntentAccepted) else str(getattr(found, "code", ""))

    def register_domain(
        self, stem: str = "shop", cluster: str = "east", name: str | None = None
    ) -> "Domain":
        """A new domain with its own key, once its login and its rights are applied."""
        name = name or fresh(stem)
        key = SigningKey.generate()
        intent = DomainRegistered(
            meta=self.operator.meta(),
            domain=name,
            owner=f"team-{name}",
            cluster=cluster,
            public_key=key.public,
            proof=key.prove(self.profile.root_key, name),
        )
        self.accepted(self.operator.emit(intent))
        places = {cluster, self.profile.governance_cluster}
        logins = {(name, place) for place in places}
        logins.add((intents_login(name), self.profile.governance_cluster))
        self.wait_for(
            lambda image: (
                set(image.identity.domains[name].rights) == places
                and all(image.identity.credentials[login].issued for login in logins)
            ),
            f"rights and logins of {name}",
        )
        return Domain(self, name, cluster, key)

    def news(self, topic: str) -> list[Any]:
        """The messages on one of the mesh's topics since the last call, all at the first."""
        if topic not in self._followed:
            self._followed[topic] = PartitionReader(self.login("mesh.operator"), topic)
        return list(self._followed[topic].to_end())

    def new_rows(self) -> list[Row]:
        """The rows written since the last call."""
        found = [message for topic in topics.ROW_TOPICS for message in self.news(topic)]
        rows = (self._row_reader.decode(message) for message in found)
        return [row for row in rows if row is not None]

    def before(self, offset: int) -> Image:
        """The image before the record at `offset`; transactions leave gaps in the offsets."""
        return self.images[max(found for found in self.images if found < offset)]

    def close(self) -> None:
        """Leave Kafka."""
        self._log.partition.close()
        for reader in (*self._followed.values(), self._row_reader.partition):
            reader.close()
        self.operator.close()


@dataclass
class Domain:
    """A domain that speaks for itself."""

    mesh: Mesh
    name: str
    cluster: str
    key: SigningKey

    @cached_property
    def emitter(self) -> Emitter:
        """The domain's reporter."""
        return Emitter(
            self.mesh.login(intents_login(self.name)),
            self.mesh.registry,
            self.key,
            mesh=self.mesh.profile.keys,
            domain=self.name,
            actor=f"{self.name}-7",
        )

    @cached_property
    def raw(self) -> RawProducer:
        """Any bytes, written to the log with the login of the domain's intents."""
        return RawProducer(self.mesh.login(intents_login(self.name)))

    def make(self, kind: type[AnyIntent], **fields: Any) -> AnyIntent:
        """An intent of this domain, not emitted yet."""
        return kind.model_validate({"meta": self.emitter.meta(), **fields})

    def say(self, kind: type[Intent], **fields: Any) -> Receipt:
        """Emit an intent."""
        return self.emitter.emit(self.make(kind, **fields))

    def topic(self, stem: str = "orders", *, schema: str | None = '"string"') -> str:
        """A topic of the domain's own at home, made with its own login; its values' schema."""
        name = f"{self.name}.{fresh(stem)}"
        admin = AdminClient(self.mesh.login(self.name, self.cluster).config())
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(15)
        if schema is not None:
            register_schema(self.mesh.endpoints, f"{name}-value", schema)
        return name

    def fill(self, topic: str, *values: bytes) -> None:
        """Write values to a topic of the domain."""
        producer = Producer(self.mesh.login(self.name, self.cluster).config(acks="all"))
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(20) == 0

    def publish(self, product: str, topic: str, **more: Any) -> Receipt:
        """Offer a topic as a product."""
        return self.say(ProductPublished, **publication(product, topic), **more)

    def product(self, stem: str = "orders") -> tuple[str, str]:
        """(product id, topic) of a newly published product."""
        topic, product = self.topic(stem), f"{self.name}.{fresh(stem)}"
        self.mesh.accepted(self.publish(product, topic))
        return product, topic

    def application(self, stem: str = "app") -> "Application":
        """A registered application, once it can log in at home with its own groups."""
        name = f"{self.name}.{fresh(stem)}"
        self.mesh.accepted(self.say(ApplicationRegistered, application=name))
        self.mesh.wait_for(
            lambda image: (
                self.cluster in image.identity.applications[name].rights
                and image.identity.credentials[name, self.cluster].issued
            ),
            f"login and rights of {name}",
        )
        return Application(self, name)

    def request(self, product: str, application: str, reason: str = "to see") -> str:
        """The id of an accepted request."""
        receipt = self.say(AccessRequested, product=product, application=application, reason=reason)
        self.mesh.accepted(receipt)
        return receipt.id

    def grant(self, product: str, request: str, *, active: bool = True) -> int:
        """Grant a request; the decision's offset, once the right is applied."""
        receipt = self.say(AccessGranted, product=product, request=request)
        self.mesh.accepted(receipt)
        if active:
            self.mesh.wait_for(
                lambda image: image.access.requests[request].active_at, f"{request} is active"
            )
        return receipt.offset

    def revoke(self, product: str, request: str, reason: str = "enough") -> None:
        """Revoke a grant, and wait until the right is gone."""
        self.mesh.accepted(self.say(AccessRevoked, product=product, request=request, reason=reason))
        self.mesh.wait_for(
            lambda image: image.access.requests[request].removed_at, f"{request} is removed"
        )

    def rotate(self, principal: str) -> None:
        """New credentials for a principal of this domain, once they are issued."""
        receipt = self.say(CredentialsRequested, principal=principal, cluster=self.cluster)
        self.mesh.accepted(receipt)
        self.mesh.wait_for(
            lambda image: (
                (found := image.identity.credentials[principal, self.cluster]).issued
                == found.generation
            ),
            f"new credentials of {principal}",
        )


@dataclass
class Application:
    """A program of a domain that reads with its own login, on its domain's cluster."""

    domain: Domain
    name: str
    group: str = field(default="")

    def __post_init__(self) -> None:
        self.group = self.group or f"{self.name}.{fresh('group')}"

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The one configuration that this client has for all its life."""
        connection = self.domain.mesh.login(self.name, self.domain.cluster)
        return reading(connection, self.group)

    def read(self, topic: str, seconds: float = PATIENCE_S) -> list[bytes] | str:
        """The values on `topic`, or the name of the error with which Kafka refuses."""
        return read(self.config, topic, seconds)


def publication(product: str, topic: str) -> dict[str, Any]:
    """The fields of a good publication."""
    return {
        "product": product,
        "topic": topic,
        "description": "what was ordered",
        "owner": "team-7",
        "quality": "RAW",
        "sla": 2,
        "acknowledged": True,
    }
