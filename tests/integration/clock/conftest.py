"""A mesh on two brokers, one of whose clocks a test sets, and domains that trade on it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from mesh_events.emit import Receipt
from mesh_events.intents import ProductUpdated
from tests.integration.clock.brokers import GOVERNING, ClockedMesh, clocked_mesh
from tests.mesh_kit import Application, Domain, Mesh, fresh


@dataclass
class Shop:
    """An owner with a product, and a neighbour with a grant that nobody revokes."""

    mesh: ClockedMesh
    owner: Domain = field(init=False)
    near: Domain = field(init=False)
    product: str = field(init=False)
    topic: str = field(init=False)
    kept: Application = field(init=False)
    kept_request: str = field(init=False)

    def __post_init__(self) -> None:
        self.owner = self.kit.register_domain("owner")
        self.near = self.kit.register_domain("near")
        self.product, self.topic = self.owner.product()
        self.kept = self.near.application("kept")
        self.kept_request = self.near.request(self.product, self.kept.name)
        self.owner.grant(self.product, self.kept_request)

    @property
    def kit(self) -> Mesh:
        return self.mesh.kit

    def update(self, by: Domain | None = None) -> Receipt:
        """A domain, the owner by default, emits an intent about a product of its own."""
        who = by or self.owner
        product = self.product if who is self.owner else f"{who.name}.nothing"
        return who.say(ProductUpdated, product=product, description=fresh("now"))

    def is_frozen(self) -> bool:
        """Whether what the neighbour says is refused because of a freeze."""
        return self.kit.code(self.update(self.near)) == "domain_frozen"

    def freeze(self) -> None:
        """The operator freezes the neighbour for an hour, at the command line."""
        why = ("--reason", "a key was seen", "--domain", "mesh")
        self.mesh.sdm("freeze", self.near.name, "--for", "1h", *why)

    def thaw(self) -> None:
        """The operator ends the freeze."""
        self.mesh.sdm("thaw", self.near.name, "--reason", "it is over", "--domain", "mesh")

    def products(self, *when: str) -> set[str]:
        """The owner's products as the command line lists them."""
        listed = self.mesh.sdm("catalog", "list", "-d", self.owner.name, *when)
        return {one["product"] for one in listed}


@pytest.fixture(scope="package")
def clocked() -> Iterator[ClockedMesh]:
    with clocked_mesh(brokers=2, services=GOVERNING) as mesh:
        mesh.govern()
        yield mesh


@pytest.fixture
def shop(clocked: ClockedMesh) -> Iterator[Shop]:
    """The brokers' clocks are right before a test and after it."""
    clocked.clock(0)
    yield Shop(clocked)
    clocked.clock(0)
