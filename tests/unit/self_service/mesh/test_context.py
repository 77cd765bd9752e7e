import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mesh_events.decisions import MeshRole
from mesh_events.errors import ConfigurationError, InfrastructureError
from mesh_events.settings import Profile, profile_path
from projections.integrity.trusted_prefix import IntegrityError
from self_service.cli.framework.exits import ExitCode, NotFoundError
from self_service.cli.framework.finding import Finding
from self_service.cli.framework.options import Reading
from self_service.cli.mesh.callers import OPERATOR, caller
from self_service.cli.mesh.context import Mesh
from self_service.cli.mesh.reachability import require_answer
from tests.memory_log import MemoryLog, key
from tests.unit.self_service.test_app import sdm


def unused_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a mesh that does not run, with the logins of east and the operator."""
    monkeypatch.delenv("SDM_DOMAIN", raising=False)
    profile = Profile(
        mesh="paper",
        governance_cluster="east",
        bootstrap_servers=f"127.0.0.1:{unused_port()}",
        registry_url="http://127.0.0.1:1",
        root_key=key("root").public,
        governor_key=key("governor").public,
    )
    profile_path(tmp_path).write_text(profile.model_dump_json())
    folder = tmp_path / "secrets" / "east"
    folder.mkdir(parents=True)
    for principal in ("east", "mesh.operator"):
        (folder / principal).write_text("password")
    return tmp_path


def test_a_mesh_that_does_not_run_is_told_with_what_starts_it(home: Path) -> None:
    told = sdm("catalog", "list", home=home)
    assert told.exit_code == ExitCode.INFRASTRUCTURE
    assert "no broker of cluster east answers at 127.0.0.1:" in told.stderr
    assert "sdm up" in told.stderr


def test_the_current_domain_reads_and_else_the_operator(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Mesh(home).reader == OPERATOR
    monkeypatch.setenv("SDM_DOMAIN", "east")
    assert Mesh(home).reader == caller("east")
    monkeypatch.setenv("SDM_DOMAIN", "west")
    assert Mesh(home).reader == OPERATOR


def test_without_any_login_the_next_step_is_told(home: Path) -> None:
    for file in (home / "secrets" / "east").iterdir():
        file.unlink()
    with pytest.raises(ConfigurationError, match="sdm switch-domain"):
        _ = Mesh(home).reader


def test_a_missing_password_names_its_file(home: Path) -> None:
    with pytest.raises(ConfigurationError, match="secrets/west/east"):
        Mesh(home).password("west", "east", "file:/nowhere/secrets/west/east")


def test_two_ways_to_ask_for_the_past_exclude_each_other(home: Path) -> None:
    told = sdm("catalog", "list", "--as-of", "1h ago", "--at-offset", "3", home=home)
    assert told.exit_code == ExitCode.USAGE
    assert "exclude each other" in told.stderr


def test_the_state_at_a_transactions_mark_is_that_of_the_record_before(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log goes to 107, and offset 30 is a mark."""

    @contextmanager
    def log(_: Mesh, **__: object) -> Iterator[object]:
        yield SimpleNamespace(partition=SimpleNamespace(bounds=lambda: (0, 108)))

    mesh, last = Mesh(home), MemoryLog().image._replace(offset=29, time=0)
    monkeypatch.setattr("self_service.cli.mesh.recall.state", lambda *_: last)
    monkeypatch.setattr(Mesh, "log", log)
    assert mesh.image(Reading(at_offset=30)) is last
    assert capsys.readouterr().err == "as of offset 29, 1970-01-01T00:00:00.000Z\n"
    assert mesh.image(Reading(at_offset=107)) is last
    with pytest.raises(NotFoundError, match="the log has no offset 108: it ends at 107"):
        mesh.image(Reading(at_offset=108))


def test_one_answering_broker_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        require_answer(f"127.0.0.1:{unused_port()},127.0.0.1:{port}")


@pytest.mark.parametrize("servers", ["localhost", "localhost:kafka", ""])
def test_what_is_no_address_is_told(servers: str) -> None:
    with pytest.raises(ConfigurationError, match="host:port"):
        require_answer(servers)


def test_no_answer_names_every_address() -> None:
    servers = f"127.0.0.1:{unused_port()},127.0.0.1:{unused_port()}"
    with pytest.raises(InfrastructureError) as told:
        require_answer(servers)
    assert servers in str(told.value)


@pytest.mark.parametrize("command", ["up", "status", "down", "catalog list", "switch-domain east"])
@pytest.mark.parametrize("home", ["/etc/passwd", ""])
def test_a_home_that_is_no_folder_is_told_by_its_variable(command: str, home: str) -> None:
    told = sdm(*command.split(), home=home)
    assert told.exit_code == ExitCode.CONFIGURATION
    assert told.stderr.startswith("error: SDM_HOME is ")
    assert "set it to a folder" in told.stderr


def test_a_home_that_cannot_be_made_is_told_with_the_variable() -> None:
    told = sdm("up", home="/proc/none")
    assert told.exit_code == ExitCode.CONFIGURATION
    assert "/proc/none cannot be written" in told.stderr
    assert "SDM_HOME" in told.stderr


@pytest.mark.parametrize(
    ("variable", "value"), [("SDM_PORT_BASE", "abc"), ("SDM_PORT_BASE", "99999"), ("SDM_CACHE", "")]
)
def test_a_setting_of_the_platform_is_told_by_its_variable(
    tmp_path: Path, variable: str, value: str
) -> None:
    told = sdm("status", home=tmp_path, **{variable: value})
    assert told.exit_code == ExitCode.CONFIGURATION
    assert told.stderr.startswith(f"error: {variable} is ")


def test_a_governors_key_that_the_state_has_revoked_is_told_before_anything_is_emitted(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh, log = Mesh(home), MemoryLog()
    monkeypatch.setattr("self_service.cli.mesh.recall.state", lambda *_: log.image)
    mesh.require_governor()
    mesh.image()
    mesh.require_governor()
    log.introduce_key(MeshRole.GOVERNOR, "governor-2")
    log.revoke_key("governor")
    mesh.image()
    with pytest.raises(ConfigurationError, match=r"was revoked at offset \d+: .* new mesh\.json"):
        mesh.require_governor()


def test_a_log_that_is_not_what_was_signed_is_kept_as_found(home: Path) -> None:
    mesh = Mesh(home)
    partition = SimpleNamespace(seek=lambda _: None, bounds=lambda: (0, 1))
    reader = cast("Any", SimpleNamespace(to_end=lambda: iter(()), partition=partition))
    faults = [IntegrityError("record_edited", 3, 4, "offsets 3 to 4 hold other bytes")]

    def work(*_: object) -> str:
        if faults:
            raise faults.pop()
        return "read again"

    assert mesh.fold(reader, work) == "read again"
    assert mesh.found == [Finding(3, "record_edited", "offsets 3 to 4 hold other bytes", 4)]
