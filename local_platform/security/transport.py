"""How the brokers of one home are reached: in the open, under TLS, or with certificates both ways.

The choice belongs to the home: it is recorded there, and holds until another one is asked for.
"""

from enum import StrEnum
from pathlib import Path

from local_platform.errors import UnusableSettingError
from local_platform.layout import Layout
from mesh_events.files import write_atomically
from mesh_events.kafka.transport import Tls, protocol


class Transport(StrEnum):
    """What brokers demand besides user and password."""

    OFF = "off"
    TLS = "tls"
    MTLS = "mtls"


def recorded(layout: Layout) -> Transport:
    """The home's choice; off where none was made.

    Raises UnusableSettingError where the record is none of ours: a guess could open what was
    closed.
    """
    try:
        text = layout.transport.read_text("utf-8").strip()
    except FileNotFoundError:
        return Transport.OFF
    try:
        return Transport(text)
    except ValueError:
        raise UnusableSettingError(
            f"{layout.transport} says {text!r}: write off, tls or mtls into it"
        ) from None


def record(layout: Layout, choice: Transport) -> None:
    """Keep a choice for the next start."""
    write_atomically(layout.transport, f"{choice}\n")


def require_same(layout: Layout, asked: Transport | None) -> None:
    """Refuse another choice than that of the servers that run now."""
    running = recorded(layout)
    if asked not in (None, running):
        raise UnusableSettingError(
            f"the mesh at {layout.home} runs with tls={running}, not {asked}: stop it with "
            "`sdm down`, then start it so"
        )


def ca_path(layout: Layout) -> Path:
    """The authority's certificate."""
    return layout.tls / "ca.pem"


def broker_path(layout: Layout) -> Path:
    """The brokers' key and certificate chain."""
    return layout.tls / "broker.pem"


def client_path(layout: Layout) -> Path:
    """The key and certificate chain that clients show."""
    return layout.tls / "client.pem"


def client_tls(layout: Layout, choice: Transport) -> Tls | None:
    """How clients reach the brokers."""
    match choice:
        case Transport.OFF:
            return None
        case Transport.TLS:
            return Tls(ca_path(layout))
        case Transport.MTLS:
            return Tls(ca_path(layout), client_path(layout))


def broker_settings(layout: Layout, choice: Transport) -> dict[str, str]:
    """What a broker's properties say of its listeners CLIENT and CONTROLLER."""
    name = protocol(client_tls(layout, choice))
    settings = {"listener.security.protocol.map": f"CONTROLLER:{name},CLIENT:{name}"}
    if choice is Transport.OFF:
        return settings
    # brokers are clients of each other: they show the certificate that they serve with
    settings |= Tls(ca_path(layout), broker_path(layout)).java()
    if choice is Transport.MTLS:
        # beside SASL Kafka heeds this only with the listener's name in front
        settings |= {
            f"listener.name.{listener}.ssl.client.auth": "required"
            for listener in ("client", "controller")
        }
    return settings
