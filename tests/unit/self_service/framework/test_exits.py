import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_platform.errors import NoLocalMeshError, PortInUseError
from mesh_events.errors import (
    ConfigurationError,
    InfrastructureError,
    InvalidValueError,
    MeshError,
    RefusedError,
    StateFaultError,
    WaitTimeoutError,
)
from self_service.cli.framework.exits import (
    ExitCode,
    FindingError,
    NotFoundError,
    UsageError,
    code_of,
    sentence,
    tell,
)

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "exit-codes.md"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), ExitCode.USAGE),
        (InvalidValueError("x"), ExitCode.USAGE),
        (RefusedError("own_request", "x"), ExitCode.REFUSED),
        (NotFoundError("x"), ExitCode.NOT_FOUND),
        (WaitTimeoutError("x"), ExitCode.TIMEOUT),
        (InfrastructureError("x", retriable=True), ExitCode.INFRASTRUCTURE),
        (PortInUseError("x"), ExitCode.INFRASTRUCTURE),
        (ConfigurationError("x"), ExitCode.CONFIGURATION),
        (NoLocalMeshError("x"), ExitCode.CONFIGURATION),
        (FindingError("x"), ExitCode.FINDING),
        (StateFaultError("x"), ExitCode.FINDING),
        (ZeroDivisionError("x"), ExitCode.UNEXPECTED),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: Exception, code: ExitCode) -> None:
    assert code_of(error) is code


def _kinds(kind: type[MeshError]) -> Iterator[type[MeshError]]:
    for inner in kind.__subclasses__():
        yield inner
        yield from _kinds(inner)


def test_no_error_of_the_project_counts_as_unexpected() -> None:
    import spark_streams.errors  # noqa: F401 - its errors count as well

    for kind in _kinds(MeshError):
        error = kind.__new__(kind)
        assert code_of(error) is not ExitCode.UNEXPECTED, kind


def test_a_refusal_shows_its_code_and_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SDM_DEBUG", raising=False)
    tell(RefusedError("own_request", "west may not grant its own request: east decides"))
    assert capsys.readouterr().err == (
        "refused (own_request): west may not grant its own request: east decides\n"
    )


def test_a_strangers_words_in_an_error_are_text_for_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SDM_DEBUG", raising=False)
    tell(RefusedError("domain_frozen", "west froze east: \x1b[2Jall\nis well"))
    assert capsys.readouterr().err == (
        "refused (domain_frozen): west froze east: \\x1b[2Jall\\nis well\n"
    )


def test_the_unexpected_is_told_in_two_lines_with_the_next_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SDM_DEBUG", raising=False)
    tell(ValueError("broken\nacross lines"))
    assert capsys.readouterr().err == (
        "unexpected ValueError: broken across lines\n"
        "run the command with SDM_DEBUG=1 to see the traceback, and report it\n"
    )


def test_sdm_debug_shows_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDM_DEBUG", "1")
    tell(ValueError("broken"))
    assert "ValueError: broken" in capsys.readouterr().err.partition("unexpected")[0]


def test_a_traceback_is_text_for_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDM_DEBUG", "1")
    tell(RefusedError("domain_frozen", "west froze east: \x1b[2Jall is well"))
    told = capsys.readouterr().err
    assert told.count(r"\x1b[2Jall is well") == 2
    assert "\x1b" not in told


def test_the_page_explains_every_exit_code_by_number_and_name() -> None:
    rows = re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert {int(number): name for number, name in rows} == {one.value: one.name for one in ExitCode}


@pytest.mark.parametrize(
    ("who", "step"), [("mesh.operator", "sdm kafka topics"), ("west", "in quarantine;")]
)
def test_a_denial_of_the_meshs_own_topics_names_the_step_of_who_was_denied(
    who: str, step: str
) -> None:
    doing = f"deleting mesh.checkpoints on the cluster of {who}"
    _, _, told = sentence(RefusedError("kafka_denied", f"{doing}: Kafka refused (X)")).partition(
        "\n"
    )
    assert step in told
    assert told.count("\n") == 0
