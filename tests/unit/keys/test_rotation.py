"""`sdm key rotate` beside itself."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from mesh_events.decisions import MeshRole
from mesh_events.emit import LogWriter
from mesh_events.errors import RefusedError
from mesh_events.meta import Event
from mesh_events.settings import Profile
from mesh_events.signing import SigningKey
from projections.identity import Identity, Role
from self_service.cli.domain.key_rotation import Rotated, Rotation
from tests.memory_log import MemoryLog, Never, key


def rotation(home: Path, log: MemoryLog) -> Rotation:
    """A rotation of the operator's key that cannot write to the log."""
    never = cast("LogWriter", Never())

    def identity() -> Identity:
        return log.image.identity

    return Rotation(home, MeshRole.OPERATOR, never, key("root"), identity, "test")


def test_two_commands_do_not_change_a_key_at_once(tmp_path: Path) -> None:
    """The second one found the first one's files gone, which nobody expected."""
    log, file = MemoryLog(), tmp_path / "keys" / "operator.key"
    key("operator").save(file)
    first, second = rotation(tmp_path, log), rotation(tmp_path, log)
    with (
        first._alone(),
        pytest.raises(RefusedError, match="another command is rotating") as refused,
    ):
        second.run("once a year", lambda: None, compromised=False)
    assert refused.value.code == "rotation_runs"
    assert {one.name for one in file.parent.iterdir()} == {"operator.key", "operator.lock"}


class CutOffError(Exception):
    """The rotating process ended here."""


class PaperWriter:
    """Appends to a log in memory; ends before the record that is `left`, counted from 1."""

    def __init__(self, log: MemoryLog, left: int = 99) -> None:
        self._log, self._left = log, left

    def append(self, event: Event, _: SigningKey | None = None) -> None:
        self._left -= 1
        if self._left == 0:
            raise CutOffError
        self._log.append(event, by="root")


class Controller:
    """The home of a mesh whose controller's key is changed, or that of another role."""

    def __init__(self, home: Path, role: MeshRole = MeshRole.CONTROLLER) -> None:
        self.home, self.log, self.role = home, MemoryLog(), role
        self.log.start_governor()
        self.file = home / "keys" / f"{role.lower()}.key"
        key(role.lower()).save(self.file)
        Profile(
            mesh="paper",
            governance_cluster="east",
            bootstrap_servers="127.0.0.1:1",
            registry_url="http://127.0.0.1:1",
            root_key=key("root").public,
            governor_key=key("governor").public,
        ).save(home)

    def rotate(self, *, compromised: bool, left: int = 99, restarts: bool = True) -> Rotated:
        def restart() -> None:
            if not restarts:
                raise CutOffError

        return self.rotation(left).run("seen elsewhere", restart, compromised=compromised)

    def rotation(self, left: int = 99) -> Rotation:
        writer = cast("LogWriter", PaperWriter(self.log, left))
        return Rotation(self.home, self.role, writer, key("root"), self.identity, "test")

    def identity(self) -> Identity:
        return self.log.image.identity

    def in_use(self) -> str:
        return SigningKey.load(self.file).public

    def in_force(self) -> set[str]:
        keys = self.identity().keys.values()
        role = Role(self.role.lower())
        return {one.public for one in keys if one.role is role and one.revoked is None}


@pytest.mark.parametrize(
    ("left", "restarts"),
    [(1, True), (2, True), (99, False)],
    ids=["before-the-introduction", "before-the-revocation", "at-the-restart"],
)
@pytest.mark.parametrize("compromised", [False, True])
def test_a_key_that_was_seen_elsewhere_is_revoked_also_after_a_rotation_that_was_cut_off(
    tmp_path: Path, left: int, restarts: bool, compromised: bool
) -> None:
    controller = Controller(tmp_path)
    with pytest.raises(CutOffError):
        controller.rotate(compromised=compromised, left=left, restarts=restarts)
    seen = controller.in_use()
    done = controller.rotate(compromised=True)
    assert controller.in_use() != seen
    assert controller.in_force() == {controller.in_use()} == {done.new}
    assert not controller.identity().has_role(seen, Role.CONTROLLER)
    assert seen in done.old
    assert [one.name for one in controller.file.parent.glob("controller.*.key")] == []


def test_a_key_that_waited_beside_one_that_was_seen_elsewhere_is_not_taken(tmp_path: Path) -> None:
    controller = Controller(tmp_path)
    with pytest.raises(CutOffError):
        controller.rotate(compromised=False, left=1)
    waiting = SigningKey.load(tmp_path / "keys" / "controller.next.key").public
    assert controller.rotate(compromised=True).new != waiting


def test_an_ordinary_rotation_that_was_cut_off_is_finished_with_the_key_that_it_made(
    tmp_path: Path,
) -> None:
    controller = Controller(tmp_path)
    with pytest.raises(CutOffError):
        controller.rotate(compromised=False, restarts=False)
    made = controller.in_use()
    assert controller.rotation().was_cut_off
    assert controller.rotate(compromised=False).new == made
    assert controller.in_force() == {made}
    assert not controller.rotation().was_cut_off


class Steps:
    """Ends the process before one of the steps that change a file or the log, counted from 1."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left = 0
        for owner, name in (
            *((Path, name) for name in ("replace", "unlink", "touch")),
            (os, "link"),
            (PaperWriter, "append"),
        ):
            patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise CutOffError
            return act(*given, **named)

        return counted


@pytest.mark.parametrize("role", [MeshRole.OPERATOR, MeshRole.GOVERNOR, MeshRole.CONTROLLER])
@pytest.mark.parametrize("compromised", [False, True])
@pytest.mark.parametrize("then", [False, True], ids=["then-ordinary", "then-compromised"])
def test_a_rotation_that_ends_before_any_of_its_steps_is_finished_by_the_next(
    role: MeshRole,
    compromised: bool,
    then: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps, step, whole = Steps(monkeypatch), 0, False
    while not whole:
        step += 1
        home = Controller(tmp_path / str(step), role)
        steps.left = step
        try:
            home.rotate(compromised=compromised)
            whole = True
        except CutOffError:
            pass
        steps.left = 0
        seen = home.in_use() if home.file.exists() else None
        done = home.rotate(compromised=then)
        assert home.in_force() == {home.in_use()} == {done.new}, f"before step {step}"
        assert home.in_use() != key(role.lower()).public, f"before step {step}"
        if then:
            assert home.in_use() != seen, f"before step {step}"
        governor = Profile.load(home.home).governor_key
        used = home.in_use() if role is MeshRole.GOVERNOR else key("governor").public
        assert governor == used, f"before step {step}"
        assert not home.rotation().was_cut_off, f"before step {step}"
    # a key is made, brought in, put in its place, and the old one revoked
    assert step > 7
