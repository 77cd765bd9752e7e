"""What `sdm status` says of a log that is not what was signed."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from self_service.cli.framework.exits import ExitCode
from self_service.cli.framework.finding import Finding
from self_service.cli.platform import commands
from tests.memory_log import MemoryLog
from tests.unit.self_service.test_app import sdm

EDITED = {"code": "record_edited", "first": 2368, "last": 2368, "text": "2368 holds other bytes"}


def status(
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
    *,
    readiness: Mapping[str, Any],
    found: tuple[Finding, ...] = (),
) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and findings of the command, beside such a worker."""
    image = MemoryLog().image
    mesh = SimpleNamespace(home=home, image=lambda: image, found=list(found))
    platform = SimpleNamespace(
        protocols=dict,
        status=lambda **_: [],
        readiness=lambda: readiness,
        certified_until=lambda: None,
        separates_domains=False,
    )
    monkeypatch.setattr(commands, "Mesh", lambda: mesh)
    monkeypatch.setattr(commands, "_platform", lambda: platform)
    monkeypatch.setattr(commands, "_rows_behind", lambda *_: 0)
    answer = sdm("status", "-o", "json", home=home)
    return answer.exit_code, json.loads(answer.stdout)["findings"]


@pytest.mark.parametrize("readiness", [{}, {"finding": None}, {"finding": "else"}])
def test_a_mesh_without_a_finding_ends_with_0(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, readiness: dict[str, Any]
) -> None:
    assert status(monkeypatch, tmp_path, readiness=readiness) == (ExitCode.OK, [])


def test_the_finding_of_the_worker_is_one_of_the_mesh_and_ends_with_8(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, findings = status(monkeypatch, tmp_path, readiness={"finding": EDITED})

    assert code == ExitCode.FINDING
    assert findings == [{**EDITED, "next": commands.VERIFY}]


def test_what_the_command_itself_has_found_is_a_finding_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    same = Finding(2368, "record_edited", "in other words", 2368)
    cut = Finding(2400, "tail_cut", "the log ends", 2410)
    code, findings = status(
        monkeypatch, tmp_path, readiness={"finding": EDITED}, found=(same, cut, cut)
    )

    assert code == ExitCode.FINDING
    assert [(one["code"], one["first"], one["last"]) for one in findings] == [
        ("record_edited", 2368, 2368),
        ("tail_cut", 2400, 2410),
    ]
