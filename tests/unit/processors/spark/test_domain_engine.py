"""A domain's Spark server that cannot be had: why, in words for who operates the mesh."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from processors.settings import DomainSpark, WorkerSettings
from processors.spark import domain_server
from processors.spark.domain_engine import DomainEngine
from spark_streams.errors import EngineError
from tests.kafka_client import eventually
from tests.links.memory import MemoryEngine

WORKER = {
    "governance_cluster": "east",
    "clusters": {},
    "registry_url": "",
    "registry_user": "",
    "registry_password": "",
    "spark_remote": "",
}


def unavailable(**settings: object) -> str:
    engine = DomainEngine("east", WorkerSettings(**WORKER, **settings))
    with pytest.raises(EngineError) as refused:
        engine.states()
    assert refused.value.code == "engine_unavailable"
    return str(refused.value)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("import sys; sys.exit('late (starting)\\nits log\\nRead the log, then try again.')",
         "server: late (starting). Read the log, then try again; see `sdm status`"),
        ("raise ValueError('odd')", "server: ValueError: odd; see"),
        ("import sys; sys.exit(3)", "server: exit code 3; see"),
        ("print('hello')", "server: the command printed 'hello'; see"),
    ],
)  # fmt: skip
def test_what_the_command_says_is_told(script: str, told: str) -> None:
    assert told in unavailable(domain_spark_command=(sys.executable, "-c", script))


WAITING = """
import sys, time
from pathlib import Path
print('{"remote": "sc://localhost:1"}', flush=True)
while not Path(sys.argv[1]).exists():
    time.sleep(0.01)
"""


class Starting:
    """A domain's engine whose server is being started, by a command that ends with the gate."""

    def __init__(self, gate: Path, *, patient: bool = False, script: str = WAITING) -> None:
        self.gate, self.server, self.connected = gate, MemoryEngine([]), 0
        self.server.down = True
        command = (sys.executable, "-c", script, str(gate))
        settings = WorkerSettings(**WORKER, domain_spark_command=command)
        self.engine = DomainEngine("east", settings, self._connect, patient=patient)

    def _connect(self, *_: object) -> MemoryEngine:  # type: ignore[return]
        self.connected += 1
        return self.server

    def answer(self) -> str:
        """The states, or the code of the error."""
        try:
            return str(self.engine.states())
        except EngineError as error:
            return error.code


@pytest.fixture
def starting(tmp_path: Path) -> Iterator[Starting]:
    yield (made := Starting(tmp_path / "gate"))
    made.gate.touch()


def test_a_server_answers_from_when_it_can_before_its_command_has_ended(
    starting: Starting,
) -> None:
    assert [starting.answer(), starting.answer()] == ["engine_starting", "engine_starting"]
    starting.server.down = False
    assert (starting.answer(), starting.connected) == ("{}", 1)


def test_a_server_that_has_started_and_does_not_answer_is_asked_for_anew(
    starting: Starting,
) -> None:
    assert starting.answer() == "engine_starting"
    starting.gate.touch()
    eventually(lambda: starting.answer() == "engine_unavailable", "the command has ended")
    starting.gate.unlink()
    assert (starting.answer(), starting.connected) == ("engine_starting", 2)


LATE = WAITING + "sys.exit('no answer (late)')"


def test_how_a_command_ended_is_not_told_when_a_server_dies_that_has_answered_since(
    tmp_path: Path,
) -> None:
    starting = Starting(tmp_path / "gate", script=LATE)
    starting.server.down = False
    assert starting.answer() == "{}"
    asking = starting.engine._asking
    assert asking is not None
    starting.gate.touch()
    eventually(lambda: asking.answer(patient=False).ended, "the command has ended")
    assert starting.answer() == "{}"
    starting.server.down = True
    with pytest.raises(EngineError) as died:
        starting.engine.states()
    assert (died.value.code, "late" in str(died.value)) == ("engine_unavailable", False)
    starting.gate.unlink()
    assert starting.answer() == "engine_starting"
    starting.gate.touch()


SILENT = """
import sys, time
from pathlib import Path
while not Path(sys.argv[1]).exists():
    time.sleep(0.01)
sys.exit("no memory")
"""


def test_nobody_waits_for_a_command_that_says_nothing_and_its_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain_server, "FIRST_WORD_S", 0.05)
    starting = Starting(tmp_path / "gate", script=SILENT)
    assert [starting.answer(), starting.answer()] == ["engine_starting", "engine_starting"]
    starting.gate.touch()
    eventually(lambda: starting.answer() == "engine_unavailable", "its end is told")
    assert "server: no memory; see" in str(starting.engine._fault)


LEAVING = """
import subprocess, sys
print('{"remote": "sc://localhost:1"}', flush=True)
wait = '''
import sys, time
from pathlib import Path
while not Path(sys.argv[1]).exists():
    time.sleep(0.01)
'''
subprocess.Popen([sys.executable, "-c", wait, sys.argv[1]])
"""


def test_a_command_has_ended_though_what_it_started_keeps_its_pipes(tmp_path: Path) -> None:
    starting = Starting(tmp_path / "gate", script=LEAVING)
    eventually(lambda: starting.answer() == "engine_unavailable", "the server is not starting")
    starting.gate.touch()


def test_a_command_that_does_not_end_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain_server, "TIMEOUT_S", 0.5)
    starting = Starting(tmp_path / "gate", script=SILENT, patient=True)
    assert starting.answer() == "engine_unavailable"
    assert "does not start in 0.5 s" in str(starting.engine._fault)


def test_who_is_patient_waits_for_the_server(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    starting = Starting(gate, patient=True)
    starting.server.down = False
    threading.Timer(0.2, gate.touch).start()
    assert starting.answer() == "{}"
    assert gate.exists()


def test_a_command_or_a_token_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SDM_DOMAIN_SPARK_COMMAND")
    assert "/no/such: No such file" in unavailable(domain_spark_command=("/no/such",))
    assert "none is named in SDM_DOMAIN_SPARK" in unavailable()
    server = DomainSpark(remote="sc://localhost:1", token=f"file:{tmp_path / 'token'}")
    assert "its token: " in unavailable(domain_spark={"east": server})
