"""Which references to secrets a connector's config may hold."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mesh_events.errors import InvalidValueError, RefusedError
from self_service.cli import connector_secrets
from self_service.cli.debezium import Database, config, database

FOLDER = "/home/connectors"
OWN = f"${{dir:{FOLDER}:connector-east-shop}}"
SUPERUSER = f"${{dir:{FOLDER}:postgres-postgres}}"


def mesh(folder: Path | str = FOLDER) -> Any:
    places = {"connect_secrets": Path(folder), "postgres_host": "127.0.0.1", "postgres_port": 5432}
    ends = SimpleNamespace(**places, postgres_user="postgres", postgres_database="east")
    return SimpleNamespace(endpoints=ends)


def of_postgres(password: str = OWN, **changed: str) -> dict[str, str]:
    source = Database("127.0.0.1", 5432, "postgres", password, "east")
    settings = {name.replace("_", "."): value for name, value in changed.items()}
    return {**config("east-shop", "east", ["users"], source), **settings}


def refused(given: dict[str, str]) -> str:
    with pytest.raises(RefusedError) as caught:
        connector_secrets.require_own(mesh(), "east-shop", given)
    assert caught.value.code == "foreign_secret"
    return str(caught.value)


FOREIGN = [
    "${dir:/home/connectors/logins/west:west}",
    "${dir://home/connectors/logins/west:west}",
    "${dir:/home/./connectors/logins/west:west}",
    "${dir:/home/connectors/x/../logins/west:west}",
    "${dir:/home/connectors:connector-west-shop}",
    "${dir:/home/connectors:registry-writer}",
    "${dir:/home/connectors:../connect/admin}",
    "${dir:/home/connectors/:connector-east-shop}",
    "${dir://home/connectors:connector-east-shop}",
    "${DIR:/home/connectors:connector-east-shop}",
    "${Dir:/home/connectors:connector-east-shop}",
    "${file:/home/connectors/logins/west/west:password}",
    "${env:HOME}",
    "${dir:/home/connectors:c\u043ennector-east-shop}",
    "${d\u0131r:/home/connectors:connector-east-shop}",
    "${${dir:/home/connectors:connector-east-shop}}",
    "${dir:${dir:/home/connectors:connector-east-shop}:x}",
    f"{OWN}{OWN}",
    f"{OWN} ",
    f"{OWN}\n",
    f"x{OWN}",
    "${",
    "a ${ b",
]


@pytest.mark.parametrize("value", FOREIGN)
@pytest.mark.parametrize("setting", ["database.password", "transforms.t.value.literal"])
def test_every_reference_but_the_connectors_own_is_refused(setting: str, value: str) -> None:
    assert setting in refused({**of_postgres(), setting: value})


@pytest.mark.parametrize("value", [OWN, SUPERUSER])
@pytest.mark.parametrize(
    "setting", ["transforms.t.value.literal", "database.user", "DATABASE.PASSWORD", "topic.prefix"]
)
def test_a_secret_is_named_by_a_password_setting_only(setting: str, value: str) -> None:
    assert setting in refused({**of_postgres(), setting: value})


@pytest.mark.parametrize("name", [OWN, "a${b", "${dir:/home/connectors/logins/west:west}"])
def test_a_reference_in_a_settings_name_is_refused(name: str) -> None:
    assert "${" in refused({**of_postgres(), name: "x"})


@pytest.mark.parametrize("kind", ["", "PostgresConnector", "org.example.Other"])
def test_a_class_of_which_no_password_setting_is_known_may_name_no_secret(kind: str) -> None:
    assert "no setting of" in refused({"connector.class": kind, "database.password": OWN})


def test_the_connectors_own_secret_goes_to_any_database() -> None:
    given = of_postgres(database_hostname="db.example", database_sslmode="require")
    connector_secrets.require_own(mesh(), "east-shop", given)
    with pytest.raises(RefusedError, match="connector-east-store"):
        connector_secrets.require_own(mesh(), "east-store", given)


def test_the_local_superusers_password_goes_to_the_local_postgres() -> None:
    plain = database(mesh(), "east-shop", None, None, None, None)
    connector_secrets.require_own(
        mesh(), "east-shop", config("east-shop", "east", ["users"], plain)
    )
    given = of_postgres(SUPERUSER, publication_autocreate_mode="disabled")
    connector_secrets.require_own(mesh(), "east-shop", given)


@pytest.mark.parametrize(
    "changed",
    [
        {"database_hostname": "elsewhere"},
        {"database_port": "5433"},
        {"database_dbname": "east?PGHOST=elsewhere"},
        {"database_dbname": "east\n"},
        {"database_socketFactory": "org.example.Elsewhere"},
        {"driver_socketFactory": "org.example.Elsewhere"},
        {"database_initial_statements": "SELECT 1"},
        {"heartbeat_action_query": "SELECT 1"},
        {"snapshot_select_statement_overrides": "public.users"},
    ],
)
def test_the_local_superusers_password_serves_nothing_else(changed: dict[str, str]) -> None:
    assert "database.password" in refused(of_postgres(SUPERUSER, **changed))
    connector_secrets.require_own(mesh(), "east-shop", of_postgres(OWN, **changed))


def test_a_stored_password_is_the_connectors_own_until_it_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("s3cret\n")
    here = mesh(tmp_path / "connectors")
    password = f"file:{tmp_path / 'given'}"
    place = database(here, "east-shop", "db", "u", password, "d")
    kept = tmp_path / "connectors" / "connector-east-shop"
    assert place.password == f"${{dir:{kept.parent}:{kept.name}}}"
    assert not kept.exists(), "nothing is stored before the config is judged"

    connector_secrets.store(here, "east-shop", password)
    assert kept.read_text() == "s3cret"
    assert kept.stat().st_mode & 0o777 == 0o600
    connector_secrets.forget(here, "east-shop")
    connector_secrets.forget(here, "east-shop")
    assert not kept.exists()


def test_a_stored_password_is_no_reference_itself(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("${dir:/home/connectors/logins/west:west}")
    with pytest.raises(InvalidValueError, match="reference again") as caught:
        connector_secrets.store(mesh(tmp_path), "east-shop", f"file:{tmp_path / 'given'}")
    assert "west" not in str(caught.value)
