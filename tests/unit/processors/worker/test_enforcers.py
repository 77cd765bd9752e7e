"""Which controllers a worker has, and over what."""

import json
from pathlib import Path

import pytest

from mesh_events.kafka.connection import Connection
from mesh_events.schema.registry import Registry
from processors.settings import WorkerSettings
from processors.worker import enforcers
from projections.image import EMPTY

SETTINGS = {
    "SDM_GOVERNANCE_CLUSTER": "east",
    "SDM_CLUSTERS": json.dumps({}),
    "SDM_REGISTRY_URL": "http://127.0.0.1:1",
    "SDM_REGISTRY_USER": "u",
    "SDM_REGISTRY_PASSWORD": "env:SDM_REGISTRY_USER",
}


def test_a_lane_of_statements_or_links_that_hangs_does_not_end_the_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in {**SETTINGS, "SDM_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    made: dict[str, bool] = {}

    def lanes(name: str, *, of_domains: bool = False) -> enforcers.ThreadedLanes:
        made[name] = of_domains
        return real(name, of_domains=of_domains)

    real = enforcers.ThreadedLanes
    monkeypatch.setattr(enforcers, "ThreadedLanes", lanes)
    login = Connection("127.0.0.1:1", "mesh.governor", "secret")
    registry = Registry("http://127.0.0.1:1")
    enforcers.enforcers(WorkerSettings.load(), login, registry, lambda: EMPTY, dict)
    assert {name for name, of_domains in made.items() if of_domains} == {"statements", "links"}
    assert {"rights", "credentials", "connectors"} <= made.keys()
