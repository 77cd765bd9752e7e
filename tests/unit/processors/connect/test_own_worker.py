"""A domain's own Connect worker: started when it is first needed, stopped when it is not."""

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mesh_events.errors import InfrastructureError
from processors.connect import own_worker
from processors.connect.own_worker import Commands, ConnectWorker, OwnWorker, StartingError
from tests.kafka_client import eventually

STARTING = """
import sys, time
from pathlib import Path
runs, gate, url, domain = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
print('{"url": "%s", "user": "%s"}' % (url, domain), flush=True)
with runs.open("a") as file:
    file.write("start " + domain + "\\n")
while not gate.exists():
    time.sleep(0.01)
"""
STOPPING = """
import sys
from pathlib import Path
with Path(sys.argv[1]).open("a") as file:
    file.write("stop " + sys.argv[2] + "\\n")
"""


class NoConnectors(BaseHTTPRequestHandler):
    """A Connect worker with no connectors."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), NoConnectors) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@dataclass
class Scene:
    """A worker of east's, whose command ends when `gate` is there, at a time that is told."""

    folder: Path
    url: str
    now: float = 0.0
    worker: OwnWorker = field(init=False)

    def __post_init__(self) -> None:
        start = (sys.executable, "-c", STARTING, str(self.runs), str(self.gate), self.url)
        stop = (sys.executable, "-c", STOPPING, str(self.runs))
        self.worker = OwnWorker("east", Commands(start, stop), clock=lambda: self.now)

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def gate(self) -> Path:
        return self.folder / "gate"

    def ran(self) -> list[str]:
        return self.runs.read_text().splitlines() if self.runs.exists() else []

    def answers(self) -> bool:
        try:
            return self.worker.deployed() == {}
        except StartingError:
            return False


@pytest.fixture
def scene(tmp_path: Path, url: str) -> Scene:
    return Scene(tmp_path, url)


def started(scene: Scene) -> None:
    scene.gate.touch()
    eventually(scene.answers, "the worker answers")


def test_a_worker_is_started_once_and_waited_for_by_nobody(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("processors.domain_server.FIRST_WORD_S", 0.05)
    assert scene.worker.is_stopped
    with pytest.raises(StartingError, match="east's own Kafka Connect worker is being started"):
        scene.worker.deployed()
    assert not scene.worker.is_stopped
    eventually(scene.ran, "the command has begun")
    assert not scene.answers()
    started(scene)
    assert scene.ran() == ["start east"]
    assert scene.worker.url == scene.url


def test_who_is_patient_waits_for_a_worker_that_is_being_started(scene: Scene) -> None:
    scene.worker.patient = True
    asking = threading.Thread(target=scene.worker.deployed, daemon=True)
    asking.start()
    eventually(scene.ran, "the command has begun")
    assert asking.is_alive()
    scene.gate.touch()
    asking.join(30)
    assert scene.answers()


def test_why_there_is_no_worker_is_told_and_it_is_not_asked_for_at_once_again(
    tmp_path: Path,
) -> None:
    runs, now = tmp_path / "runs", [0.0]
    script = f"import sys; open({str(runs)!r}, 'a').write('x'); sys.exit('no port is left')"
    commands = Commands((sys.executable, "-c", script))
    worker = OwnWorker("east", commands, clock=lambda: now[0], patient=True)
    for _ in range(3):
        with pytest.raises(
            InfrastructureError, match=r"east has no .* worker: no port is left; see"
        ):
            worker.deployed()
    assert runs.read_text() == "x"
    now[0] += own_worker.AGAIN_S
    with pytest.raises(InfrastructureError, match="no port is left"):
        worker.deployed()
    assert runs.read_text() == "xx"


def test_one_that_does_not_answer_any_more_is_asked_for_anew(scene: Scene) -> None:
    started(scene)
    scene.worker.url = "http://127.0.0.1:1"
    with pytest.raises(InfrastructureError, match="does not answer"):
        scene.worker.deployed()
    started(scene)
    assert scene.ran() == ["start east"] * 2


def test_a_worker_that_nobody_needs_is_stopped_after_a_while_and_started_when_it_is(
    scene: Scene,
) -> None:
    started(scene)
    scene.now += own_worker.IDLE_S - 1
    assert scene.worker.rest()
    assert scene.ran() == ["start east"]
    assert scene.answers()
    scene.now += own_worker.IDLE_S - 1
    assert scene.worker.rest()
    assert not scene.worker.is_stopped
    scene.now += 1
    assert scene.worker.rest()
    assert scene.worker.is_stopped
    assert scene.worker.rest()
    assert scene.ran() == ["start east", "stop east"]
    started(scene)
    assert scene.ran() == ["start east", "stop east", "start east"]


@pytest.mark.parametrize("script", ["raise SystemExit('it hangs')", "import nosuch"])
def test_a_worker_that_does_not_stop_is_asked_again_when_it_was_needed(
    scene: Scene, script: str
) -> None:
    start = scene.worker.commands.start
    scene.worker.commands = Commands(start, (sys.executable, "-c", script))
    started(scene)
    scene.now += own_worker.IDLE_S
    assert scene.worker.rest()
    started(scene)
    assert scene.ran() == ["start east"] * 2


def runs_on(worker: OwnWorker) -> bool:
    """Whether a worker that was not needed for long is not stopped."""
    return not worker.rest() and not worker.is_stopped


def test_a_worker_that_somebody_else_keeps_is_neither_started_nor_stopped(
    scene: Scene, tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text("s")
    named = ConnectWorker(url=scene.url, user="u", password=f"file:{secret}")
    worker = OwnWorker("east", scene.worker.commands, named, clock=lambda: scene.now)
    assert worker.deployed() == {}
    scene.now += own_worker.IDLE_S
    assert runs_on(worker)
    assert scene.ran() == []


def test_without_a_command_that_stops_it_a_worker_runs_on(scene: Scene) -> None:
    scene.worker.commands = Commands(scene.worker.commands.start)
    started(scene)
    scene.now += own_worker.IDLE_S
    assert runs_on(scene.worker)


def test_a_password_that_cannot_be_read_is_told(scene: Scene, tmp_path: Path) -> None:
    named = ConnectWorker(url=scene.url, user="u", password=f"file:{tmp_path / 'none'}")
    worker = OwnWorker("east", Commands(), named)
    with pytest.raises(InfrastructureError, match=r"east has no .* worker: its password: "):
        worker.deployed()
