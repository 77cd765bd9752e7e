"""What a connector's config may say about logins."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mesh_events.errors import InvalidValueError, RefusedError
from self_service.cli.connect_login import ConnectorLogin, domain_of, require_no_login, tasks

JAAS = 'org.example.Login required username="east" password="${dir:/home/connectors:x}";'


@pytest.mark.parametrize(
    "config",
    [
        {"producer.override.sasl.jaas.config": JAAS},
        {"admin.override.bootstrap.servers": "elsewhere:9092"},
        {"consumer.override.security.protocol": "PLAINTEXT"},
    ],
)
def test_a_login_in_a_config_is_refused_with_the_settings_name(config: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match=next(iter(config))) as caught:
        require_no_login(config)
    assert caught.value.code == "foreign_login"


def test_what_only_tunes_may_be_set() -> None:
    require_no_login({"producer.override.compression.type": "zstd"})


def test_a_domains_password_lies_with_the_connectors_until_its_last_one_is_gone(
    tmp_path: Path,
) -> None:
    clusters = {"home": SimpleNamespace(bootstrap_servers="127.0.0.1:9092")}
    identity = SimpleNamespace(clusters=clusters, domains={"east": SimpleNamespace(cluster="home")})
    (tmp_path / "east").write_text("s3cret")
    mesh: Any = SimpleNamespace(
        endpoints=SimpleNamespace(connect_secrets=tmp_path / "connectors"),
        password_path=lambda _cluster, principal: tmp_path / principal,
    )
    login = ConnectorLogin(mesh, SimpleNamespace(identity=identity), "east", "shop")  # type: ignore[arg-type]
    login.settings()
    link = tmp_path / "connectors" / "logins" / "home" / "east"
    assert link.read_text() == "s3cret"

    shop = {"producer.override.sasl.jaas.config": JAAS}
    login.leave({"shop": shop, "other": shop, "foreign": {}})
    assert link.exists(), "another connector of the domain works with it"
    login.leave({"shop": shop, "foreign": {}})
    assert not link.is_symlink()
    assert (tmp_path / "east").exists()


def test_a_connectors_domain_is_the_one_whose_login_it_has() -> None:
    assert domain_of({"producer.override.sasl.jaas.config": JAAS}) == "east"
    assert domain_of({"topic.prefix": "east.shop"}) is None


def test_a_connector_has_at_least_one_task() -> None:
    assert tasks({}) == 1
    assert tasks({"tasks.max": "3"}) == 3
    for wrong in ("0", "-1", "many", "100000"):
        with pytest.raises(InvalidValueError, match=r"tasks\.max"):
            tasks({"tasks.max": wrong})
