"""A domain's own Connect worker, which is started when it is first needed."""

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mesh_events.errors import InfrastructureError
from processors.connect import own_worker
from processors.connect.own_worker import ConnectWorker, OwnWorker, StartingError
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


class NoConnectors(BaseHTTPRequestHandler):
    """A Connect worker with no connectors."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
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
    """A worker of east's, whose command ends when `gate` is there."""

    folder: Path
    url: str
    worker: OwnWorker = field(init=False)

    def __post_init__(self) -> None:
        start = (sys.executable, "-c", STARTING, str(self.runs), str(self.gate), self.url)
        self.worker = OwnWorker("east", start)

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
    monkeypatch.setattr("processors.spark.domain_server.FIRST_WORD_S", 0.05)
    assert scene.worker.is_stopped
    with pytest.raises(StartingError, match="east's own Kafka Connect worker is being started"):
        scene.worker.deployed()
    assert not scene.worker.is_stopped
    eventually(scene.ran, "the command has begun")
    assert not scene.answers()
    started(scene)
    assert scene.ran() == ["start east"]
    assert scene.worker.url == scene.url


def test_who_asks_for_it_waits_for_a_worker_that_is_being_started(scene: Scene) -> None:
    scene.worker.waits = True
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
    start = (sys.executable, "-c", script)
    worker = OwnWorker("east", start, clock=lambda: now[0], waits=True)
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


def test_one_that_does_not_know_the_password_is_another_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(scene)
    monkeypatch.setattr(NoConnectors, "status", 401)
    with pytest.raises(InfrastructureError, match="answered 401"):
        scene.worker.deployed()
    assert scene.worker.is_stopped
    monkeypatch.setattr(NoConnectors, "status", 200)
    started(scene)
    assert scene.ran() == ["start east"] * 2


def test_a_worker_that_somebody_else_keeps_is_not_started(scene: Scene, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("s")
    named = ConnectWorker(url=scene.url, user="u", password=f"file:{secret}")
    worker = OwnWorker("east", scene.worker.start, named)
    assert worker.deployed() == {}
    assert not worker.is_stopped
    assert scene.ran() == []


def test_a_password_that_cannot_be_read_is_told(scene: Scene, tmp_path: Path) -> None:
    named = ConnectWorker(url=scene.url, user="u", password=f"file:{tmp_path / 'none'}")
    worker = OwnWorker("east", (), named)
    with pytest.raises(InfrastructureError, match=r"east has no .* worker: its password: "):
        worker.deployed()
