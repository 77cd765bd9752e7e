"""The worker's settings from environment variables."""

import json
from pathlib import Path

import pytest

from mesh_events.errors import ConfigurationError
from processors.connect.own_worker import OwnWorker
from processors.settings import WorkerSettings

NEEDED = {
    "SDM_GOVERNANCE_CLUSTER": "east",
    "SDM_CLUSTERS": json.dumps({}),
    "SDM_REGISTRY_URL": "http://127.0.0.1:1",
    "SDM_REGISTRY_USER": "u",
    "SDM_REGISTRY_PASSWORD": "p",
}


def test_an_empty_variable_is_as_one_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NEEDED.items():
        monkeypatch.setenv(name, value)
    for name in ("SDM_SPARK_REMOTE", "SDM_DOMAIN_SPARK", "SDM_LINEAGE_URL", "SDM_LINK_PARTITIONS"):
        monkeypatch.setenv(name, "")
    found = WorkerSettings.load()
    assert (found.spark_remote, found.domain_spark, found.lineage_url) == (None, {}, None)
    assert found.link_partitions == WorkerSettings.model_fields["link_partitions"].default


def loaded(patch: pytest.MonkeyPatch, tmp_path: Path, **more: str) -> WorkerSettings:
    """The settings where no local mesh is, with more variables; each without `SDM_`."""
    patch.setenv("SDM_HOME", str(tmp_path))
    for name, value in {**NEEDED, **{f"SDM_{one}": value for one, value in more.items()}}.items():
        patch.setenv(name, value)
    return WorkerSettings.load()


ONE = {"url": "http://east:8083"}
NAMED = {"DOMAIN_CONNECT": json.dumps({"east": ONE}), "CONNECT_SECRETS": "/secrets"}
SHARED = {"CONNECT_URL": "http://all:8083", "CONNECT_PASSWORD": "env:NO", "CONNECT_SECRETS": "/s"}
BY_COMMAND = {"DOMAIN_CONNECT_COMMAND": json.dumps(["false"]), "CONNECT_SECRETS": "/secrets"}


@pytest.mark.parametrize(
    ("given", "east", "west"),
    [
        (NAMED, "connect.east", None),
        (BY_COMMAND, "connect.east", "connect.west"),
        (SHARED, "connect-east", "connect-east"),
        (NAMED | SHARED, "connect.east", "connect-east"),
        (BY_COMMAND | SHARED, "connect.east", "connect.west"),
        ({}, None, None),
    ],
)
def test_a_domain_has_its_own_connect_worker_where_it_is_named_or_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    given: dict[str, str],
    east: str | None,
    west: str | None,
) -> None:
    monkeypatch.setenv("NO", "p")
    connects = loaded(monkeypatch, tmp_path, **given).connects()
    found = {domain: connects.of(domain) for domain in ("east", "west")}
    assert {one: cluster and cluster.group for one, cluster in found.items()} == {
        "east": east,
        "west": west,
    }
    for domain, cluster in found.items():
        assert connects.of(domain) is cluster
        is_own = cluster is not None and cluster.group == f"connect.{domain}"
        assert isinstance(cluster and cluster.api, OwnWorker) == is_own


@pytest.mark.parametrize("given", [NAMED, BY_COMMAND, SHARED])
def test_connect_without_a_folder_of_secrets_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: dict[str, str]
) -> None:
    monkeypatch.setenv("NO", "p")
    more = {name: value for name, value in given.items() if name != "CONNECT_SECRETS"}
    with pytest.raises(ConfigurationError, match="SDM_CONNECT_SECRETS is not set"):
        loaded(monkeypatch, tmp_path, **more).connects()
