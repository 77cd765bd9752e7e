"""The key of a domain that is registered stays where it is, unless the domain is refused."""

from pathlib import Path
from typing import Any

import pytest

from mesh_events.errors import RefusedError
from mesh_events.signing import SigningKey
from projections.image import EMPTY
from self_service.cli.domain import commands
from self_service.cli.framework.options import SubmitOptions
from self_service.cli.mesh import submitting
from self_service.cli.mesh.submitting import IntentRefusedError


class Mesh:
    """Of a home, in front of a log without domains."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.profile: Any = type("Profile", (), {"root_key": SigningKey.generate().public})

    def image(self) -> Any:
        return EMPTY


@pytest.mark.parametrize(
    ("refusal", "kept"),
    [
        # the domain is registered, and its login cannot be made
        (RefusedError("login_taken", "the cluster has a login east"), True),
        (RefusedError("overtaken", "east is QUARANTINED meanwhile"), True),
        (IntentRefusedError("reserved_name", "choose another name"), False),
    ],
)
def test_the_key_is_removed_only_where_the_governor_refuses_the_domain(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refusal: RefusedError, kept: bool
) -> None:
    def submit(*_: Any, **__: Any) -> Any:
        assert [*tmp_path.rglob("*east*")]
        raise refusal

    monkeypatch.setattr(commands, "Mesh", lambda: Mesh(tmp_path))
    monkeypatch.setattr(submitting, "submit", submit)
    with pytest.raises(RefusedError):
        commands.register(SubmitOptions(), "east", "east", "team")
    assert bool([one for one in tmp_path.rglob("*east*") if one.is_file()]) is kept
