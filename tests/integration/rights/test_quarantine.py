"""A domain that is cut off can do nothing on real clusters, and everything again afterwards."""

import pytest

from mesh_events.errors import RefusedError
from mesh_events.intents import (
    ApplicationRegistered,
    DomainQuarantined,
    DomainReleased,
    Intent,
    intents_login,
)
from mesh_events.read import LogReader
from processors.clusters.rights import Acl
from projections.access import State
from tests import kafka_acls
from tests.integration.rights.test_rights import DENIED, GROUP_DENIED, controller_of, filled
from tests.mesh_kit import Domain, Mesh, eventually, fresh, write


def told(kit: Mesh, kind: type[Intent], domain: str) -> None:
    """The operator says it, and it is accepted."""
    kit.accepted(
        kit.operator.emit(
            kind(meta=kit.operator.meta(), domain=domain, reason="to be looked at")  # type: ignore[call-arg]
        )
    )


def test_a_domain_in_quarantine_can_do_nothing_until_its_release(owner: Domain, kit: Mesh) -> None:
    product, topic = filled(owner)
    suspect = kit.register_domain("suspect")
    application, own_topic = suspect.application(), suspect.topic()
    request = suspect.request(product, application.name)
    owner.grant(product, request)
    assert application.read(topic) == [b"one", b"two"]
    bystander = kit.register_domain("bystander").application()

    told(kit, DomainQuarantined, suspect.name)
    kit.wait_for(
        lambda image: (
            not image.access.requests[request].is_enforced
            and not image.identity.domains[suspect.name].rights
            and not image.identity.applications[application.name].rights
        ),
        f"every right of {suspect.name} gone",
    )
    assert application.read(topic) in (DENIED, GROUP_DENIED)
    assert write(kit.login(suspect.name, "east"), own_topic) == DENIED
    theirs = [
        one
        for one in controller_of(kit, "east").rights()
        if one.principal.partition(".")[0] == suspect.name
    ]
    assert theirs == []
    assert kit.image().access.requests[request].state is State.GRANTED
    with LogReader(kit.login(suspect.name)) as reader, pytest.raises(RefusedError):
        reader.to_end()
    try:
        said = suspect.say(ApplicationRegistered, application=f"{suspect.name}.{fresh('app')}")
        code = kit.code(said)
    except RefusedError:
        # Kafka refuses its word before the governor does
        code = "refused by Kafka"
    assert code in ("domain_quarantined", "refused by Kafka")
    assert bystander.name in kit.image().identity.applications

    told(kit, DomainReleased, suspect.name)
    kit.wait_for(
        lambda image: image.access.requests[request].state is State.ACTIVE,
        f"the grant {request} enforced again",
    )
    eventually(lambda: application.read(topic) == [b"one", b"two"], "both values again")
    kit.wait_for(
        lambda image: bool(image.identity.domains[suspect.name].rights),
        f"the rights of {suspect.name} back",
    )
    assert write(kit.login(suspect.name, "east"), own_topic) != DENIED
    said = suspect.say(ApplicationRegistered, application=f"{suspect.name}.{fresh('app')}")
    assert kit.code(said) == ""


def test_who_was_refused_speaks_as_soon_as_the_right_is_back(kit: Mesh) -> None:
    """The client remembers a refusal for a moment; a service is not to be refused by that."""
    sender = kit.register_domain("sender")
    login = kit.admin_login("east")
    writer = intents_login(sender.name)
    denial = Acl(writer, "write", "topic", "mesh.governance", denies=True)
    kafka_acls.made(login, denial)

    def refused() -> bool:
        try:
            sender.say(ApplicationRegistered, application=f"{sender.name}.{fresh('app')}")
        except RefusedError:
            return True
        return False

    eventually(refused, "Kafka refuses")
    assert kafka_acls.unmade(login, denial) == 1
    # a broker may take a moment; the emitter takes none
    eventually(lambda: write(kit.login(writer), "mesh.governance") != DENIED, "it may write")
    assert not refused()
