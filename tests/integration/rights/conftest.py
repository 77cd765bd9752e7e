"""The run's mesh, and for each module an owner and a buyer of its own."""

import pytest

from tests.mesh_fixtures import kit
from tests.mesh_kit import Application, Domain, Mesh

__all__ = ["application", "buyer", "kit", "owner"]


@pytest.fixture(scope="module")
def owner(kit: Mesh) -> Domain:
    return kit.register_domain("owner")


@pytest.fixture(scope="module")
def buyer(kit: Mesh) -> Domain:
    return kit.register_domain("buyer")


@pytest.fixture
def application(buyer: Domain) -> Application:
    return buyer.application()
