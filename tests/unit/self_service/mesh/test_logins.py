"""A client's file against the mesh that it leads to."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local_platform.layout import Layout
from local_platform.security import certificates
from mesh_events.errors import ConfigurationError
from mesh_events.kafka.connection import Connection
from mesh_events.kafka.transport import Tls
from self_service.cli.domain.credentials import Form, client_settings, properties
from self_service.cli.mesh import logins

HERE = "127.0.0.1:9092"


def given(folder: Path, monkeypatch: Any, *, tls: Tls | None, place: str = HERE) -> logins.Login:
    monkeypatch.setattr(logins, "require_answer", lambda _: None)
    file = folder / "client.properties"
    login = Connection(place, "west.app", "secret", tls)
    file.write_text(properties(client_settings(login, Form.LIBRDKAFKA)))
    return logins.Login(client=file)


def mesh(tls: Tls | None) -> Any:
    clusters = {"west": SimpleNamespace(bootstrap_servers=HERE)}
    image = SimpleNamespace(identity=SimpleNamespace(clusters=clusters))
    return SimpleNamespace(tls=tls, image=lambda: image)


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    certificates.ensure(Layout(tmp_path))
    return Tls(tmp_path / "tls" / "ca.pem", tmp_path / "tls" / "client.pem")


def test_a_file_from_before_the_listeners_changed_is_told(
    tmp_path: Path, monkeypatch: Any, tls: Tls
) -> None:
    for old, now in ((None, tls), (tls, None), (Tls(tls.ca, None), tls)):
        login = given(tmp_path, monkeypatch, tls=old)
        with pytest.raises(ConfigurationError, match=r"sdm access credentials west\.app --out"):
            login.connection(mesh(now), None)


def test_a_file_that_fits_or_leads_elsewhere_is_taken(
    tmp_path: Path, monkeypatch: Any, tls: Tls
) -> None:
    for own, here in ((None, None), (tls, tls), (tls, Tls(tls.ca, None))):
        login = given(tmp_path, monkeypatch, tls=own)
        assert login.connection(mesh(here), None).user == "west.app"
    elsewhere = given(tmp_path, monkeypatch, tls=None, place="broker.invalid:9092")
    assert elsewhere.connection(mesh(tls), None).user == "west.app"
