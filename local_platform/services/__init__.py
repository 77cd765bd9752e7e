"""One description per server: its settings files, its command, its readiness probe.

Nothing here starts a process; the supervisor does. `catalogue()` is the list of all
services in start order; a new server is a class here and a line there.
"""

from collections.abc import Iterable, Sequence

from local_platform import generators
from local_platform.domain_servers import CONNECT, KINDS, SPARK, numbers
from local_platform.errors import UnknownServiceError
from local_platform.services.base import Service
from local_platform.services.class_archive import SparkClasses
from local_platform.services.connect import Connect
from local_platform.services.domain_spark import DomainSpark
from local_platform.services.generator import GeneratorService
from local_platform.services.kafka import KafkaBroker
from local_platform.services.mesh import Bootstrap, Governor
from local_platform.services.postgres import Postgres
from local_platform.services.registry import Registry
from local_platform.site import Site

SERVERS = ("postgres", "kafka-east", "kafka-west", "registry")
"""The services that need nothing of the mesh's own code."""

STOP_ORDER = (
    ("class-archive",),
    ("governor", "bootstrap"),
    (SPARK.prefix, CONNECT.prefix),
    ("registry", "registry-west"),
    ("kafka-west", "kafka-east"),
    ("postgres",),
)
"""Waves in which services stop: each before those that it would miss."""


def catalogue(site: Site) -> tuple[Service, ...]:
    """Return every service of a site, each after those that it needs."""
    return (
        Postgres(site),
        KafkaBroker(site, "east"),
        KafkaBroker(site, "west"),
        Registry(site),
        *([Registry(site, "registry-west", "west")] if site.has_west_registry else []),
        *(DomainSpark(site, domain) for domain in numbers(site.layout, SPARK)),
        *(Connect(site, domain) for domain in numbers(site.layout, CONNECT)),
        Bootstrap(site),
        Governor(site),
        SparkClasses(site),
        *(GeneratorService(site, name) for name in generators.known(site.layout)),
    )


def wanted_generators(site: Site) -> list[Service]:
    """The generators that were started and not stopped since, in the order of their names.

    One whose description cannot be read is among them: its service tells so when it is started.
    """
    return [
        GeneratorService(site, name)
        for name in generators.known(site.layout)
        if generators.is_wanted(site.layout, name)
    ]


def chosen(every: Iterable[Service], names: Sequence[str] | None) -> tuple[Service, ...]:
    """Return the named services, in start order; all that are not started on demand where None.

    Raises:
        UnknownServiceError: a name is none of them.
    """
    every = tuple(every)
    known = [service.name for service in every]
    for name in names or ():
        if name not in known:
            raise UnknownServiceError(f"no service {name!r}: there are {', '.join(known)}")
    if names is None:
        return tuple(service for service in every if not service.on_demand)
    return tuple(service for service in every if service.name in names)


def stop_waves(names: Iterable[str]) -> list[list[str]]:
    """Services by the wave in which they stop."""
    waves: list[list[str]] = [[] for _ in STOP_ORDER]
    for name in names:
        kind = next((one.prefix for one in KINDS if name.startswith(one.prefix)), name)
        found = (number for number, wave in enumerate(STOP_ORDER) if kind in wave)
        waves[next(found, 0)].append(name)
    return waves
