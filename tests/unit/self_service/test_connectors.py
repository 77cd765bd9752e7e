import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from mesh_events.errors import InfrastructureError, InvalidValueError
from self_service.cli.connector_config import read
from self_service.cli.connectors import Connectors, first_line, plain_secrets, redacted
from self_service.cli.debezium import Database, _address, config

SOURCE = Database("127.0.0.1", 5432, "postgres", "${dir:/secrets:postgres}", "east")
JAAS = 'org.example.Login required username="east" password="%s";'


def test_each_table_becomes_a_topic_of_the_domain() -> None:
    found = config("east-shop", "east", ["users", "sales.orders"], SOURCE)
    assert found["table.include.list"] == "public.users,sales.orders"
    route = re.compile(found["transforms.route.regex"])
    replacement = found["transforms.route.replacement"].replace("$1", r"\1")
    captured = f"{found['topic.prefix']}.public.users"
    assert route.fullmatch(captured)
    assert route.sub(replacement, captured) == "east.users"
    assert found["slot.name"] == "sdm_east_shop"
    assert not plain_secrets(found)


@pytest.mark.parametrize(
    ("connector", "table"), [("East", "users"), ("a b", "users"), ("a", "x;y"), ("a", "a.b.c")]
)
def test_names_that_would_break_the_config_are_refused(connector: str, table: str) -> None:
    with pytest.raises(InvalidValueError):
        config(connector, "east", [table], SOURCE)


@pytest.mark.parametrize(
    ("text", "expected"), [("db", ("db", 5432)), ("db:1", ("db", 1)), ("db:65535", ("db", 65535))]
)
def test_an_address_is_a_host_and_perhaps_a_port(text: str, expected: tuple[str, int]) -> None:
    assert _address(text) == expected


@pytest.mark.parametrize("text", ["", ":1", "db:", "db:0", "db:65536", "db:-1", "db:x", "db:1:2"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match="port 1 to 65535"):
        _address(text)


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("database.password", "s3cret", True),
        ("database.password", "${dir:/secrets:postgres}", False),
        ("database.password", "x${dir:/secrets:postgres}", True),
        ("producer.override.sasl.jaas.config", JAAS % "s3cret", True),
        ("producer.override.sasl.jaas.config", JAAS % "${dir:/secrets:east}", False),
        ("key.converter.basic.auth.user.info.token", "abc", True),
        ("database.user", "postgres", False),
    ],
)
def test_a_secret_is_never_shown_and_a_reference_is(name: str, value: str, *, hidden: bool) -> None:
    assert redacted({name: value})[name] == ("(hidden)" if hidden else value)
    assert plain_secrets({name: value}) == ([name] if hidden else [])


def test_the_cause_of_a_failure_is_its_last_one() -> None:
    trace = "org.A: task died\n\tat x\nCaused by: org.B: no rights.\n\tat y"
    assert first_line({"state": "FAILED", "trace": trace}) == "org.B: no rights"
    assert first_line({"state": "FAILED"}) == "FAILED"


@pytest.mark.parametrize(
    "text", ["tasks.max: 1\nx: true\n", '{"name": "n", "config": {"tasks.max": 1, "x": true}}']
)
def test_a_config_file_is_yaml_or_connects_own_json(text: str, tmp_path: Path) -> None:
    path = tmp_path / "connector"
    path.write_text(text)
    assert read(path) == {"tasks.max": "1", "x": "true"}


@pytest.mark.parametrize("text", ["", "- a", "a: [", "just text"])
def test_a_file_without_settings_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "connector.yaml"
    path.write_text(text)
    with pytest.raises(InvalidValueError, match=r"connector\.yaml"):
        read(path)


@pytest.mark.parametrize("text", ["root:$6$hash:19000:\nsecond: [hash", "hash", "a: 'hash"])
def test_what_stands_in_a_file_of_something_else_is_not_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_text(text)
    with pytest.raises(InvalidValueError) as told:
        read(path)
    assert "hash" not in str(told.value)


class Elsewhere(BaseHTTPRequestHandler):
    """Sends whoever asks to another path, and notes what was asked for."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(307)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_an_answer_that_sends_elsewhere_is_an_error_and_not_followed() -> None:
    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            with pytest.raises(InfrastructureError, match="answered 307"):
                Connectors(f"http://127.0.0.1:{server.server_port}", ("admin", "x")).states()
        finally:
            server.shutdown()
            thread.join()
    assert [path.partition("?")[0] for path in Elsewhere.asked] == ["/connectors"]
