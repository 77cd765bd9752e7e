"""What a broker reads of a request before anybody asks who may send it."""

from dataclasses import replace
from pathlib import Path

import pytest

from local_platform.security.principals import Principal, Right
from mesh_events.kafka.connection import Connection
from tests.integration.local_platform.bounded import broker, connected
from tests.integration.local_platform.raw_kafka import RawConnection

pytestmark = pytest.mark.platform

CROWD = Principal("crowd", "secret", (Right("ALL", "TOPIC", "crowd.", prefixed=True),))
APP, REGISTRY = Principal("crowd.app", "secret", ()), Principal("registry", "secret", ())
SECRET = "of the broker's account"
NOT_AUTHORIZED, UNSUPPORTED_VERSION, INVALID_REQUEST = 31, 35, 42
PROVIDER = "org.apache.kafka.common.config.provider"


def settings(file: Path) -> dict[str, str]:
    """Settings of a broker by which it is to answer with what stands in a file."""
    return {
        "config.providers": "d",
        "config.providers.d.class": f"{PROVIDER}.DirectoryConfigProvider",
        "num.io.threads": f"${{d:{file.parent}:{file.name}}}",
    }


def test_nobody_reads_a_file_of_the_brokers_account_by_settings_of_a_broker(
    tmp_path: Path,
) -> None:
    """It reads what settings refer to, and quotes it, before the controller asks who may."""
    file = tmp_path / "password"
    file.write_text(SECRET)
    with broker({}, [CROWD, APP, REGISTRY]) as admin:
        for who in (CROWD, APP, REGISTRY):
            client = connected(admin, who)
            code, said = client.alter(settings(file))
            assert (code, SECRET in said) == (NOT_AUTHORIZED, False), said
            client.close()
        client = RawConnection(admin.bootstrap_servers, admin)
        assert client.alter({"num.io.threads": "12"}) == (0, "")
        client.close()


@pytest.mark.parametrize("logs_in", [True, False], ids=["a login", "nobody"])
def test_a_header_has_so_many_fields_that_nobody_knows_and_no_more(logs_in: bool) -> None:
    """Nine million of them, two bytes each, filled a heap before their sender was looked at."""
    with broker({}, [CROWD, APP]) as admin:
        login: Connection | None = replace(admin, user=APP.name, password=APP.password)
        few = RawConnection(admin.bootstrap_servers, login)
        few.name_fields(20)
        assert few.is_answered()
        few.close()
        many = RawConnection(admin.bootstrap_servers, login if logs_in else None)
        many.name_fields(21)
        assert many.is_closed(20)
        many.close()


def test_a_question_for_versions_in_an_unknown_version_is_answered() -> None:
    with broker({}, [CROWD]) as admin:
        client = connected(admin, CROWD)
        assert client.ask_for_versions(99) == UNSUPPORTED_VERSION
        client.close()


def test_a_change_of_a_setting_that_is_none_does_not_reach_the_controller() -> None:
    """Over each one it gave its leadership up: 60 of them kept others waiting for a minute."""
    with broker({}, [CROWD, APP]) as admin:
        client = connected(admin, CROWD)
        for operation in (0x63, -1, 4):
            code, said = client.alter({"retention.ms": "1000"}, "crowd.nope", operation)
            assert (code, "there is no change" in said) == (INVALID_REQUEST, True), said
        code, said = client.alter({"retention.ms": "1000"}, "crowd.nope")
        assert "there is no change" not in said
        client.close()


def test_who_cannot_be_answered_is_disconnected() -> None:
    """Kafka fails again while it makes or sends the answer, and kept the connection for minutes."""
    with broker({}, [CROWD]) as admin:
        twice, nothing = connected(admin, CROWD), RawConnection(admin.bootstrap_servers, admin)
        assert nothing.create_topic("crowd.topic", 1) == 0
        twice.replace_twice("crowd.topic")
        nothing.produce_nothing("crowd.topic")
        for client in (twice, nothing):
            assert client.is_closed(20)
            client.close()
