"""The worker's settings from environment variables."""

import json

import pytest

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
