"""`sdm key rotate` beside itself."""

from pathlib import Path
from typing import cast

import pytest

from mesh_events.decisions import MeshRole
from mesh_events.emit import LogWriter
from mesh_events.errors import RefusedError
from projections.identity import Identity
from self_service.cli.key_rotation import Rotation
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
