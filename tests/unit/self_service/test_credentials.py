from pathlib import Path

import pytest
from confluent_kafka import Producer

from mesh_events.errors import ConfigurationError
from mesh_events.kafka import Connection
from self_service.cli.credentials import (
    Form,
    _write_private,
    client_settings,
    login_of,
    place,
    properties,
    read_properties,
)
from self_service.cli.exits import NotFoundError
from tests import paper_story as story
from tests.paper_log import PaperLog

LOGIN = Connection("127.0.0.1:9092", "west.analytics", "s3=cr#t")


def test_the_librdkafka_form_is_taken_by_that_client_as_it_is() -> None:
    settings = client_settings(LOGIN, Form.LIBRDKAFKA)
    own = {"auto.offset.reset", "group.id"}
    Producer({**{k: v for k, v in settings.items() if k not in own}, "log_level": 0})
    assert settings["group.id"] == "west.analytics.main"


def test_the_java_form_has_the_login_in_one_jaas_line() -> None:
    settings = client_settings(LOGIN, Form.JAVA)
    assert settings["sasl.jaas.config"].endswith('username="west.analytics" password="s3=cr#t";')
    assert "sasl.password" not in settings


def test_a_written_file_logs_in_as_it_said_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.touch(mode=0o644)
    _write_private(path, properties(client_settings(LOGIN, Form.LIBRDKAFKA)))
    assert path.stat().st_mode & 0o777 == 0o600
    assert login_of(read_properties(path)) == LOGIN
    assert [one.name for one in tmp_path.iterdir()] == ["client.properties"]


def test_a_file_of_something_else_is_told(tmp_path: Path) -> None:
    path = tmp_path / "other.properties"
    path.write_text("# nothing\nname=value\n")
    with pytest.raises(ConfigurationError, match=r"no sasl\.username"):
        read_properties(path)
    with pytest.raises(ConfigurationError, match="No such file"):
        read_properties(tmp_path / "none")


def test_a_login_is_handed_out_at_home_and_where_else_there_is_one() -> None:
    log = PaperLog()
    story.domains(log)
    governance = log.image.identity.governance_cluster
    assert place(log.image, "west", None) == "west"
    assert place(log.image, "west", governance) == governance != "west"
    assert place(log.image, "west.app", None) == "west"
    for principal, where in (("west.app", governance), ("west", "nowhere")):
        with pytest.raises(NotFoundError, match="it has one on"):
            place(log.image, principal, where)
    with pytest.raises(NotFoundError, match="no application west"):
        place(log.image, "west.none", None)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        _write_private(tmp_path / "missing" / "file", "x")
