"""Under which names a domain may have connectors, before a server of its own is started for one."""

from pathlib import Path

import pytest

from mesh_events.errors import RefusedError
from self_service.cli.connect.change import Change
from self_service.cli.framework.options import StartOptions
from self_service.cli.mesh.context import Mesh
from tests import sample_history as story
from tests.memory_log import MemoryLog


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("../x", "invalid_name", "'../x' cannot be a connector: use <domain>.<name>"),
        ("x.", "invalid_name", "'x.' cannot be a connector"),
        (".x", "invalid_name", "'.x' cannot be a connector"),
        ("east.a.b", "invalid_name", "'east.a.b' cannot be a connector"),
        ("west.shop", "not_your_domain", "east may not change west.shop: only west may"),
        ("nosuch.shop", "not_your_domain", "only nosuch may"),
    ],
)
def test_a_name_of_another_form_is_told_from_one_of_another_domain(
    name: str, code: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog()
    story.domains(log)
    monkeypatch.setattr(Mesh, "image", lambda _: log.image)
    options = StartOptions(domain="east")
    change = Change(Mesh(tmp_path / "nowhere"), options, name, {}, None, None)
    with pytest.raises(RefusedError) as refused:
        change.settle(dry_run=False)
    assert refused.value.code == code
    assert told in str(refused.value)
