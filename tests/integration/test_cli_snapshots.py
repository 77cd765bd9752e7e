"""What a command reads out of its home's snapshots is what a replay of the log gives."""

import shutil
from pathlib import Path

import pytest

from local_platform import PlatformSettings
from mesh_events.read import LogReader
from projections.image import Image
from projections.replay import fold
from self_service.cli.audit import log
from self_service.cli.audit.log import Filter, Wanted
from self_service.cli.framework.options import Reading
from self_service.cli.mesh import recall
from self_service.cli.mesh.context import Mesh as Home
from snapshots.history import extend
from snapshots.place import open_store, store_path
from tests.mesh_fixtures import kit
from tests.mesh_kit import Mesh
from tests.signed_log import busy_log

__all__ = ["kit"]
EVERY = 16


@pytest.fixture
def home(
    kit: Mesh, settings: PlatformSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Home:
    """The run's mesh seen from a home without snapshots, for which no log is short."""
    monkeypatch.setattr(recall, "SHORT_LOG", 0)
    monkeypatch.setattr(recall, "BEHIND", 2 * EVERY)
    monkeypatch.setattr("snapshots.history.EVERY", EVERY)
    shutil.copy(settings.home / "mesh.json", tmp_path)
    (tmp_path / "secrets").symlink_to(settings.home / "secrets")
    return Home(tmp_path)


def images(kit: Mesh) -> list[Image]:
    with LogReader(kit.login("mesh.operator")) as reader:
        return list(fold(reader.to_end()))


def test_a_state_is_the_replayed_one_and_the_log_is_read_once(
    home: Home, kit: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit.register_domain("recalled")
    known = images(kit)
    assert recall.state(home, known[-1].offset, None) == known[-1]
    store = store_path(home.home, home.profile.mesh, home.profile.root_key)
    assert store.exists()
    monkeypatch.delattr(Home, "fold")
    monkeypatch.setattr(recall, "BEHIND", 1_000_000)
    for image in known[:: max(1, len(known) // 40)]:
        assert recall.state(home, image.offset, None) == image
        last = max(one.offset for one in known if one.time <= image.time)
        assert recall.state(home, None, image.time).offset == last
    assert recall.state(home, None, None).offset >= known[-1].offset


@pytest.mark.parametrize("broken", ["other log", "no database"])
def test_snapshots_of_no_use_are_told_and_the_log_is_replayed(
    broken: str, home: Home, kit: Mesh, capsys: pytest.CaptureFixture[str]
) -> None:
    known = images(kit)
    if broken == "other log":
        store = open_store(home.home, home.profile.mesh, home.profile.root_key)
        other = busy_log()
        extend(store, lambda start: (one for one in other if one.offset >= start), every=EVERY)
        store.close()
    else:
        store_path(home.home, home.profile.mesh, home.profile.root_key).parent.mkdir()
        store_path(home.home, home.profile.mesh, home.profile.root_key).write_bytes(
            b"no database" * 1000
        )
    assert recall.state(home, known[-1].offset, None) == known[-1]
    said = capsys.readouterr().err.replace("\n", " ")
    expected = {
        "other log": "hold other records than when they were read: replaying the whole log",
        "no database": "it is made again from the log; this was done, the file is now",
    }
    assert expected[broken] in said


@pytest.mark.parametrize("wanted", [Filter(), Filter(kind="foundation"), Filter(type=["none"])])
def test_the_last_steps_are_those_of_the_whole_log_and_not_all_of_it_is_read(
    home: Home, kit: Mesh, monkeypatch: pytest.MonkeyPatch, wanted: Filter
) -> None:
    kit.register_domain("latest")
    monkeypatch.setattr(log, "_LEAST_READ", 8)
    recall.state(home)
    sought, now = Wanted(wanted, None, None), Reading()
    whole = log._history(home, now)
    fitting = [one for one in whole.steps if sought.holds(one, whole.image)]
    monkeypatch.delattr(Home, "fold")
    monkeypatch.setattr(recall, "BEHIND", 1_000_000)
    found = log._latest(home, sought, 3)
    if found is None:
        # all of the log is read where its end has too few
        assert wanted != Filter()
        return
    latest = [one for one in found.steps if sought.holds(one, found.image)]
    assert latest[-3:] == fitting[-3:]
    assert wanted.kind is not None or len(found.steps) < len(whole.steps) / 2
