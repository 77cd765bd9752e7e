"""`sdm audit verify --checkpoints`: what a copy must hold to vouch for anything."""

from pathlib import Path

import pytest

from mesh_events.integrity.places import file_text, read_file
from self_service.cli.audit.verify import Doubted, _lacking
from self_service.cli.verification.checkpoint_audit import judge
from tests.signed_log import ORIGIN, busy_log, signed_over

NOTE = file_text(signed_over(busy_log(), 6)[0].note)


def lacking(copy: Path, doubted: Doubted) -> list[str]:
    evidence = judge(ORIGIN, [], read_file(copy))
    return [one.code for one in _lacking(copy, evidence, doubted)]


@pytest.mark.parametrize("held", [b"", b"\x00\xff\x17", NOTE[: len(NOTE) // 2].encode()])
def test_a_copy_without_a_checkpoint_of_the_mesh_is_a_finding(tmp_path: Path, held: bytes) -> None:
    copy = tmp_path / "copy.notes"
    copy.write_bytes(held)
    assert lacking(copy, Doubted(checkpoints=copy)) == ["checkpoint_missing"]
    assert lacking(copy, Doubted(checkpoints=None)) == []


def test_a_copy_with_one_checkpoint_is_enough(tmp_path: Path) -> None:
    copy = tmp_path / "copy.notes"
    copy.write_text(NOTE)
    assert lacking(copy, Doubted(checkpoints=copy)) == []


def test_a_copy_of_another_meshs_checkpoints_holds_none_of_this(tmp_path: Path) -> None:
    copy = tmp_path / "copy.notes"
    copy.write_text(NOTE)
    evidence = judge("sdm.example/another", [], read_file(copy))
    [found] = _lacking(copy, evidence, Doubted(checkpoints=copy))
    assert found.code == "checkpoint_missing"
