"""A key of the mesh is changed while it works; what was cut off is completed by asking again."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from local_platform import LocalPlatform, PlatformSettings
from mesh_events.decisions import MeshRole
from mesh_events.emit import LogWriter, Receipt
from mesh_events.intents import ProductUpdated
from mesh_events.meta import Event
from mesh_events.settings import key_path
from mesh_events.signing import SigningKey
from projections.identity import Identity, Role
from self_service.cli.domain.key_rotation import Rotation
from tests.mesh_kit import Mesh

pytestmark = pytest.mark.platform


class CutOffError(Exception):
    """The rotating process ended here."""


class FrailWriter(LogWriter):
    """Ends before or after its n-th record."""

    left = 99
    before = True

    def append(self, event: Event, key: SigningKey | None = None) -> Receipt:
        self.left -= 1
        if self.left == 0 and self.before:
            raise CutOffError
        receipt = super().append(event, key)
        if self.left == 0:
            raise CutOffError
        return receipt


@contextmanager
def frail(kit: Mesh) -> Iterator[FrailWriter]:
    root = SigningKey.load(key_path(kit.home, "root"))
    with FrailWriter(kit.admin_login(), kit.registry, root, root.public) as writer:
        yield writer


def identity(kit: Mesh) -> Identity:
    return kit.image().identity


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("cut", "compromised"), [(None, False), ((1, False), True), ("restart", True)]
)
def test_a_rotation_that_was_cut_off_goes_on_when_it_is_asked_for_again(
    kit: Mesh, settings: PlatformSettings, cut: tuple[int, bool] | str | None, compromised: bool
) -> None:
    """The controller's key only, which nobody but the worker of this mesh holds."""
    domain = kit.register_domain("keys")
    product, _ = domain.product()
    old = SigningKey.load(key_path(kit.home, "controller")).public
    restarts = []

    def restart() -> None:
        restarts.append(1)
        if cut == "restart" and len(restarts) == 1:
            raise CutOffError
        LocalPlatform(settings).restart("governor")

    def rotate(writer: FrailWriter) -> None:
        root = SigningKey.load(key_path(kit.home, "root"))
        rotation = Rotation(
            kit.home, MeshRole.CONTROLLER, writer, root, lambda: identity(kit), "tester-7"
        )
        rotation.run("once a year", restart, compromised=compromised)

    with frail(kit) as writer:
        if cut is not None:
            if isinstance(cut, tuple):
                writer.left, writer.before = cut
            with pytest.raises(CutOffError):
                rotate(writer)
            writer.left = 99
        rotate(writer)

    new = SigningKey.load(key_path(kit.home, "controller")).public
    assert new != old
    assert identity(kit).has_role(new, Role.CONTROLLER)
    assert not identity(kit).has_role(old, Role.CONTROLLER)
    assert not [
        path.name for path in key_path(kit.home, "controller").parent.glob("controller.*.key")
    ]
    # under the new key rights are applied and reported again
    application = domain.application("late")
    assert application.domain.name == domain.name
    assert kit.code(domain.say(ProductUpdated, product=product, tags=["new"]).offset) == ""
