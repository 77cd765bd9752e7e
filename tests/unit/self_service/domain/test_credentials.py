import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer

from local_platform.layout import Layout
from local_platform.security import certificates
from mesh_events.errors import ConfigurationError
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.transport import Tls
from self_service.cli.domain.credentials import (
    Form,
    client_settings,
    hand_out,
    login_of,
    place,
    private_file,
    properties,
    read_properties,
)
from self_service.cli.framework.exits import NotFoundError
from tests import sample_history as story
from tests.memory_log import MemoryLog

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
    with private_file(path) as write:
        [part] = [one for one in tmp_path.iterdir() if one != path]
        assert part.stat().st_mode & 0o777 == 0o600
        write(properties(client_settings(LOGIN, Form.LIBRDKAFKA)))
    assert path.stat().st_mode & 0o777 == 0o600
    assert login_of(read_properties(path)) == LOGIN
    assert [one.name for one in tmp_path.iterdir()] == ["client.properties"]


@pytest.mark.parametrize("shown", [True, False])
def test_a_written_file_carries_what_tls_needs(tmp_path: Path, shown: bool) -> None:
    certificates.ensure(Layout(tmp_path))
    tls = Tls(tmp_path / "tls" / "ca.pem", tmp_path / "tls" / "client.pem" if shown else None)
    login, path = replace(LOGIN, tls=tls), tmp_path / "client.properties"
    path.write_text(properties(client_settings(login, Form.LIBRDKAFKA)))
    assert login_of(read_properties(path)) == login
    java = client_settings(login, Form.JAVA)
    assert java["security.protocol"] == "SASL_SSL"
    assert java["ssl.truststore.location"] == str(tls.ca)
    assert java.get("ssl.keystore.location") == (str(tls.certificate) if shown else None)


def test_a_file_that_asks_for_tls_never_logs_in_in_the_clear() -> None:
    settings = client_settings(LOGIN, Form.LIBRDKAFKA) | {"security.protocol": "SASL_SSL"}
    with pytest.raises(ConfigurationError, match=r"without ssl\.ca\.location"):
        login_of(settings)


def test_a_file_of_something_else_is_told(tmp_path: Path) -> None:
    path = tmp_path / "other.properties"
    path.write_text("# nothing\nname=value\n")
    with pytest.raises(ConfigurationError, match=r"no sasl\.username"):
        read_properties(path)
    with pytest.raises(ConfigurationError, match="No such file"):
        read_properties(tmp_path / "none")


def test_only_a_line_feed_ends_a_setting(tmp_path: Path) -> None:
    path, settings = tmp_path / "client.properties", client_settings(LOGIN, Form.LIBRDKAFKA)
    settings["ssl.ca.location"] = "/etc/a\x85b\u2028c/ca.pem"
    path.write_text(properties(settings), "utf-8")
    assert read_properties(path) == settings
    path.write_bytes(b"sasl.username=\xff\n")
    with pytest.raises(ConfigurationError, match="byte 15 is not UTF-8"):
        read_properties(path)


def test_a_login_is_handed_out_at_home_and_where_else_there_is_one() -> None:
    log = MemoryLog()
    story.domains(log)
    governance = log.image.identity.governance_cluster
    assert place(log.image, "west", None) == "west"
    assert place(log.image, "west", governance) == governance != "west"
    assert place(log.image, "west.app", None) == "west"
    for principal, where in (("west.app", governance), ("west", "nowhere")):
        with pytest.raises(NotFoundError, match="clusters with a login: "):
            place(log.image, principal, where)
    with pytest.raises(NotFoundError, match="no application west"):
        place(log.image, "west.none", None)


class _NotAskedError(Exception):
    """Raised by a mesh that is asked for a sender, which is the first step to an intent."""


class _PaperMesh:
    def __init__(self) -> None:
        log = MemoryLog()
        story.domains(log)
        self.image = lambda: log.image

    def acting_as(self, _: object) -> None:
        raise _NotAskedError


@pytest.mark.parametrize("name", ["", "missing/file", "/proc/x", "/dev/null", "x" * 300, "/"])
def test_no_login_is_made_anew_for_a_file_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    mesh: Any = _PaperMesh()
    asked: Any = SimpleNamespace(domain=None)
    with pytest.raises(ConfigurationError, match="cannot be written"):
        hand_out(mesh, asked, "west.app", Form.JAVA, tmp_path / name, None)
    with pytest.raises(_NotAskedError):
        hand_out(mesh, asked, "west.app", Form.JAVA, tmp_path / "file", None)
    assert not list(tmp_path.iterdir()), "nothing is left of a file that was not written"


def test_a_login_that_was_not_made_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(path)
    with private_file(link):
        pass
    assert link.is_symlink()
    link.unlink()
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["client.properties"]


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone makes a link of another user")
def test_a_link_of_another_user_is_not_followed(tmp_path: Path) -> None:
    path, link = tmp_path / "client.properties", tmp_path / "link"
    path.write_text("old")
    link.symlink_to(path)
    os.chown(link, 65_534, 65_534, follow_symlinks=False)
    refused = pytest.raises(ConfigurationError, match="a link that another user made")
    with refused, private_file(link) as write:
        write("new")
    assert path.read_text() == "old"
    os.chown(link, 0, 0, follow_symlinks=False)
    with private_file(link) as write:
        write("new")
    assert path.read_text() == "new"


def test_settings_that_cannot_take_their_place_are_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    with private_file(path) as write:
        path.mkdir()
        with pytest.raises(ConfigurationError, match="has its content") as caught:
            write("new")
    [kept] = [one for one in tmp_path.iterdir() if one != path]
    assert str(kept) in str(caught.value)
    assert kept.read_text() == "new"
    assert kept.stat().st_mode & 0o777 == 0o600
