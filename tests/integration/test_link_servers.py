"""Each domain's links run on a Spark server of its own: what ends one leaves the others alone."""

import os
import signal

import pytest

from local_platform import LocalPlatform, PlatformSettings
from local_platform.supervision.state import State as ServiceState
from projections.links import Link, State
from tests.mesh_fixtures import kit, pid_of, spark_service
from tests.mesh_kit import Domain, Mesh, eventually

__all__ = ["kit"]
pytestmark = pytest.mark.platform


def test_the_links_of_a_domain_do_not_notice_that_another_domains_server_dies(
    kit: Mesh, settings: PlatformSettings
) -> None:
    hurt, other = (kit.register_domain(stem) for stem in ("ownhurt", "ownother"))
    reader = kit.register_domain("far", "west").application()

    def linked(owner: Domain) -> tuple[str, str]:
        """(link, topic) of a product that the reader may read in its own cluster."""
        product, topic = owner.product()
        owner.fill(topic, b"before")
        owner.grant(product, reader.domain.request(product, reader.name))
        eventually(lambda: reader.read(topic) == [b"before"], f"the copy of {topic}")
        return f"{product}@west", topic

    def link_of(name: str) -> Link:
        return kit.image().links[name]

    hurt_link, hurt_topic = linked(hurt)
    other_link, other_topic = linked(other)
    services = {one.name for one in LocalPlatform(settings).status()}
    assert {spark_service(hurt.name), spark_service(other.name)} <= services
    before = {name: link_of(name).incarnation for name in (hurt_link, other_link)}

    victim = pid_of(settings, spark_service(hurt.name))
    assert victim is not None
    os.kill(victim, signal.SIGKILL)
    other.fill(other_topic, b"meanwhile")
    eventually(lambda: reader.read(other_topic) == [b"before", b"meanwhile"], "it goes on")
    hurt.fill(hurt_topic, b"after")
    eventually(lambda: reader.read(hurt_topic) == [b"before", b"after"], "the other is back")
    assert link_of(hurt_link).incarnation > before[hurt_link]
    assert (link_of(other_link).incarnation, link_of(other_link).state) == (
        before[other_link],
        State.ACTIVE,
    )
    [again] = [
        one for one in LocalPlatform(settings).status() if one.name == spark_service(hurt.name)
    ]
    assert (again.state, again.pid != victim) == (ServiceState.READY, True)
