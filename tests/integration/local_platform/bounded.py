"""A broker of a test's own, with bounds of the test's own."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from local_platform import LocalPlatform
from local_platform.jars.java import properties
from local_platform.security import certificates
from local_platform.security.principals import Principal, Right, ensure_principals
from local_platform.security.transport import Transport
from local_platform.services.kafka import KafkaBroker
from local_platform.settings import PlatformSettings
from local_platform.site import Site
from mesh_events.kafka.connection import Connection
from tests.conftest import LIFETIME_S, new_settings
from tests.integration.clock.brokers import BrokerProcess
from tests.integration.local_platform.raw_kafka import RawConnection

DENIED, UNKNOWN = 29, 3
_BROKER = "kafka-west"


@contextmanager
def broker(
    bounds: Mapping[str, int],
    principals: Sequence[Principal],
    settings: PlatformSettings | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Connection]:
    """The super user's login at a broker with these properties of the JVM, and more settings."""

    class Bounded(KafkaBroker):
        def _options(self) -> list[str]:
            # the last one of a name counts
            return [*super()._options(), *(f"-D{name}={value}" for name, value in bounds.items())]

        def _properties(self, log: Path) -> str:
            # the same
            return super()._properties(log) + properties(more)

    settings = settings or new_settings()
    LocalPlatform(settings, [_BROKER]).fetch()
    site = Site.of(settings)
    site.make_folders()
    if site.transport is not Transport.OFF:
        certificates.ensure(site.layout)
    made = Bounded(site, "west")
    server = BrokerProcess(made, LIFETIME_S)
    try:
        made.prepare()
        server.start()
        server.wait()
        admin = site.login("west", "admin")
        ensure_principals(admin, principals)
        yield admin
    finally:
        server.kill()
        shutil.rmtree(settings.home, ignore_errors=True)


def owner(name: str) -> Principal:
    """A login that owns topics and transactional ids below its name."""
    kinds = ("TOPIC", "TRANSACTIONAL_ID")
    return Principal(
        name, "secret", tuple(Right("ALL", kind, f"{name}.", prefixed=True) for kind in kinds)
    )


def log_of(settings: PlatformSettings) -> str:
    """What the broker logged."""
    return (settings.home / "logs" / f"{_BROKER}.log").read_text()


def connected(admin: Connection, who: Principal) -> RawConnection:
    """A connection of a login."""
    login = replace(admin, user=who.name, password=who.password)
    return RawConnection(admin.bootstrap_servers, login)


def code(admin: Connection, who: Principal, *names: str) -> int | None:
    """What is said of the first of these topics; None where the connection was closed."""
    try:
        client = connected(admin, who)
        try:
            return client.describe_topics(names)
        finally:
            client.close()
    except (AssertionError, OSError):
        return None
