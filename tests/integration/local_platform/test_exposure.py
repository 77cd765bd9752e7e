"""What other users of the machine, and other machines, see of a running mesh: nothing."""

import psutil

from local_platform import Endpoints, LocalPlatform, PlatformSettings
from local_platform.supervision.state import ServiceStatus


def processes(settings: PlatformSettings) -> list[ServiceStatus]:
    found = [one for one in LocalPlatform(settings).status() if one.pid is not None]
    assert {"kafka-east", "governor"} <= {one.name for one in found}
    return found


def test_no_password_is_on_any_command_line(mesh: Endpoints, settings: PlatformSettings) -> None:
    files = (settings.home / "secrets").rglob("*")
    passwords = {path.read_text() for path in files if path.is_file()}
    assert len(passwords) >= 9

    for status in processes(settings):
        line = " ".join(psutil.Process(status.pid).cmdline())
        assert not [password for password in passwords if password in line]


def test_nothing_listens_beyond_this_machine(mesh: Endpoints, settings: PlatformSettings) -> None:
    for status in processes(settings):
        for connection in psutil.Process(status.pid).net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                assert connection.laddr.ip in {"127.0.0.1", "::ffff:127.0.0.1"}, status.name
