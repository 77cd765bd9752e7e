"""`sdm key rotate` beside itself."""

from pathlib import Path
from typing import cast

import pytest

from mesh_events.decisions import MeshRole
from mesh_events.emit import LogWriter
from mesh_events.errors import RefusedError
from mesh_events.meta import Event
from mesh_events.signing import SigningKey
from projections.identity import Identity, Role
from self_service.cli.domain.key_rotation import Rotated, Rotation
from tests.paper_log import Never, PaperLog, key


def rotation(home: Path, log: PaperLog) -> Rotation:
    """A rotation of the operator's key that cannot write to the log."""
    never = cast("LogWriter", Never())

    def identity() -> Identity:
        return log.image.identity

    return Rotation(home, MeshRole.OPERATOR, never, key("root"), identity, "test")


def test_two_commands_do_not_change_a_key_at_once(tmp_path: Path) -> None:
    """The second one found the first one's files gone, which nobody expected."""
    log, file = PaperLog(), tmp_path / "keys" / "operator.key"
    key("operator").save(file)
    first, second = rotation(tmp_path, log), rotation(tmp_path, log)
    with first._alone(), pytest.raises(RefusedError, match="another command changes") as refused:
        second.run("once a year", lambda: None, compromised=False)
    assert refused.value.code == "rotation_runs"
    assert {one.name for one in file.parent.iterdir()} == {"operator.key", "operator.lock"}


class CutOffError(Exception):
    """The rotating process ended here."""


class PaperWriter:
    """Appends to a paper log; ends before the record that is `left`, counted from 1."""

    def __init__(self, log: PaperLog, left: int = 99) -> None:
        self._log, self._left = log, left

    def append(self, event: Event, _: SigningKey | None = None) -> None:
        self._left -= 1
        if self._left == 0:
            raise CutOffError
        self._log.append(event, by="root")


class Keeper:
    """The home of a mesh whose keeper's key is changed."""

    def __init__(self, home: Path) -> None:
        self.home, self.log = home, PaperLog()
        self.log.start_governor()
        self.file = home / "keys" / "keeper.key"
        key("keeper").save(self.file)

    def rotate(self, *, compromised: bool, left: int = 99, restarts: bool = True) -> Rotated:
        def restart() -> None:
            if not restarts:
                raise CutOffError

        return self.rotation(left).run("seen elsewhere", restart, compromised=compromised)

    def rotation(self, left: int = 99) -> Rotation:
        writer = cast("LogWriter", PaperWriter(self.log, left))
        return Rotation(self.home, MeshRole.KEEPER, writer, key("root"), self.identity, "test")

    def identity(self) -> Identity:
        return self.log.image.identity

    def in_use(self) -> str:
        return SigningKey.load(self.file).public

    def in_force(self) -> set[str]:
        keys = self.identity().keys.values()
        return {one.public for one in keys if one.role is Role.KEEPER and one.revoked is None}


@pytest.mark.parametrize(
    ("left", "restarts"),
    [(1, True), (2, True), (99, False)],
    ids=["before-the-introduction", "before-the-revocation", "at-the-restart"],
)
@pytest.mark.parametrize("compromised", [False, True])
def test_a_key_that_was_seen_elsewhere_is_revoked_also_after_a_rotation_that_was_cut_off(
    tmp_path: Path, left: int, restarts: bool, compromised: bool
) -> None:
    keeper = Keeper(tmp_path)
    with pytest.raises(CutOffError):
        keeper.rotate(compromised=compromised, left=left, restarts=restarts)
    seen = keeper.in_use()
    done = keeper.rotate(compromised=True)
    assert keeper.in_use() != seen
    assert keeper.in_force() == {keeper.in_use()} == {done.new}
    assert not keeper.identity().has_role(seen, Role.KEEPER)
    assert seen in done.old
    assert [one.name for one in keeper.file.parent.glob("keeper.*.key")] == []


def test_a_key_that_waited_beside_one_that_was_seen_elsewhere_is_not_taken(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    with pytest.raises(CutOffError):
        keeper.rotate(compromised=False, left=1)
    waiting = SigningKey.load(tmp_path / "keys" / "keeper.next.key").public
    assert keeper.rotate(compromised=True).new != waiting


def test_an_ordinary_rotation_that_was_cut_off_is_finished_with_the_key_that_it_made(
    tmp_path: Path,
) -> None:
    keeper = Keeper(tmp_path)
    with pytest.raises(CutOffError):
        keeper.rotate(compromised=False, restarts=False)
    made = keeper.in_use()
    assert keeper.rotation().was_cut_off
    assert keeper.rotate(compromised=False).new == made
    assert keeper.in_force() == {made}
    assert not keeper.rotation().was_cut_off
