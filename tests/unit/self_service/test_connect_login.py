"""What a connector's config may say about logins."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mesh_events.errors import InvalidValueError, RefusedError
from self_service.cli.connect_login import domain_of, require_no_login, tasks

MESH: Any = SimpleNamespace(endpoints=SimpleNamespace(connect_secrets=Path("/home/connectors")))
JAAS = 'org.example.Login required username="east" password="${dir:/home/connectors:x}";'


@pytest.mark.parametrize(
    "config",
    [
        {"producer.override.sasl.jaas.config": JAAS},
        {"admin.override.bootstrap.servers": "elsewhere:9092"},
        {"consumer.override.security.protocol": "PLAINTEXT"},
        {"database.password": "${dir:/home/connectors/logins/east:west}"},
        {"database.password": "${dir:/home/connectors/x/../logins/east:west}"},
        {"database.password": "${dir:/home/connectors:x}${file:/home/connectors/logins:y}"},
    ],
)
def test_a_login_in_a_config_is_refused_with_the_settings_name(config: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match=next(iter(config))) as caught:
        require_no_login(MESH, config)
    assert caught.value.code == "foreign_login"


def test_other_secrets_and_what_only_tunes_may_be_set() -> None:
    require_no_login(
        MESH,
        {
            "database.password": "${dir:/home/connectors:connector-east-shop}",
            "producer.override.compression.type": "zstd",
        },
    )


def test_a_connectors_domain_is_the_one_whose_login_it_has() -> None:
    assert domain_of({"producer.override.sasl.jaas.config": JAAS}) == "east"
    assert domain_of({"topic.prefix": "east.shop"}) is None


def test_a_connector_has_at_least_one_task() -> None:
    assert tasks({}) == 1
    assert tasks({"tasks.max": "3"}) == 3
    for wrong in ("0", "-1", "many", "100000"):
        with pytest.raises(InvalidValueError, match=r"tasks\.max"):
            tasks({"tasks.max": wrong})
