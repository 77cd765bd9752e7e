"""A domain's Spark server that cannot be had: why, in words for who operates the mesh."""

import sys
import threading
from pathlib import Path

import pytest

from processors.domain_engine import DomainEngine
from processors.settings import DomainSpark, WorkerSettings
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
print("starting", flush=True)
while not Path(sys.argv[1]).exists():
    time.sleep(0.01)
print('{"remote": "sc://localhost:1"}')
"""


def waiting(gate: Path, *, patient: bool) -> DomainEngine:
    """An engine whose server is being started until there is a file."""
    command = (sys.executable, "-c", WAITING, str(gate))
    return DomainEngine(
        "east",
        WorkerSettings(**WORKER, domain_spark_command=command),
        lambda *_: MemoryEngine([]),  # type: ignore[arg-type,return-value]
        patient=patient,
    )


def test_a_server_that_is_being_started_is_told_and_found_once_it_runs(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    engine = waiting(gate, patient=False)

    def code() -> str:
        try:
            return str(engine.states())
        except EngineError as error:
            return error.code

    assert [code(), code()] == ["engine_starting", "engine_starting"]
    gate.touch()
    eventually(lambda: code() == "{}", "the server is found")


def test_who_is_patient_waits_for_the_server(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    engine = waiting(gate, patient=True)
    threading.Timer(0.2, gate.touch).start()
    assert engine.states() == {}


def test_a_command_or_a_token_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert "/no/such: No such file" in unavailable(domain_spark_command=("/no/such",))
    assert "none is named in SDM_DOMAIN_SPARK" in unavailable()
    server = DomainSpark(remote="sc://localhost:1", token=f"file:{tmp_path / 'token'}")
    assert "its token: " in unavailable(domain_spark={"east": server})
