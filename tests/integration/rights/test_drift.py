"""Rights that an administrator changes behind the mesh's back: found, told, repaired or left."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mesh_events.facts import DriftFound, DriftKind, Remedy
from processors.clusters.rights import Acl, reader
from tests.integration.rights.test_rights import DENIED, controller_of, filled
from tests.kafka_acls import made, unmade
from tests.mesh_kit import Application, Domain, Mesh, eventually, fresh

KINDS = DriftKind


def told(kit: Mesh, subject: str) -> list[DriftFound]:
    """What the log has told about a subject, in order."""
    return [
        entry.event
        for _, entry in sorted(kit.entries.items())
        if isinstance(entry.event, DriftFound) and entry.event.subject == subject
    ]


def wait_told(kit: Mesh, subject: str, remedy: Remedy) -> DriftFound:
    """The last fact on a subject, once it tells this remedy."""

    def found(_: object) -> bool:
        facts = told(kit, subject)
        return bool(facts) and facts[-1].remedy is remedy

    kit.wait_for(found, f"{remedy} told of {subject}")
    return told(kit, subject)[-1]


@contextmanager
def changed_behind(kit: Mesh, acl: Acl) -> Iterator[Acl]:
    """An ACL that an administrator has made, gone at the end."""
    login = kit.admin_login()
    made(login, acl)
    try:
        yield acl
    finally:
        unmade(login, acl)


def test_a_right_that_somebody_took_comes_back_and_is_told_once(
    kit: Mesh, owner: Domain, buyer: Domain, application: Application
) -> None:
    product, topic = filled(owner)
    request = buyer.request(product, application.name)
    owner.grant(product, request)
    right = Acl(application.name, "read", "topic", topic)

    assert unmade(kit.admin_login(), right) == 1

    fact = wait_told(kit, request, Remedy.REPAIRED)
    assert (fact.drift, fact.cluster) == (KINDS.RIGHT_MISSING, "east")
    assert (fact.bindings, fact.topics) == ([str(right)], [topic])
    assert application.read(topic) == [b"one", b"two"]
    assert len(told(kit, request)) == 1


def test_a_revoked_right_that_somebody_gave_back_is_withdrawn_and_told(
    kit: Mesh, owner: Domain, buyer: Domain, application: Application
) -> None:
    product, topic = filled(owner)
    request = buyer.request(product, application.name)
    owner.grant(product, request)
    owner.revoke(product, request)

    controller_of(kit, "east").grant(reader(application.name, topic))

    fact = wait_told(kit, request, Remedy.REPAIRED)
    assert fact.drift is KINDS.RIGHT_RETURNED
    assert application.read(topic) == DENIED


@pytest.mark.parametrize("how", ["literal", "prefixed", "wildcard"])
def test_a_strangers_right_is_told_once_and_left_until_it_is_gone(
    kit: Mesh, owner: Domain, how: str
) -> None:
    _, topic = filled(owner)
    stranger = fresh("mallory")
    strange = {
        "literal": Acl(stranger, "read", "topic", topic),
        "prefixed": Acl(stranger, "write", "topic", topic[:-2], prefixed=True),
        "wildcard": Acl(stranger, "all", "topic", "*"),
    }[how]
    subject = f"principal/{stranger}"
    with changed_behind(kit, strange):
        fact = wait_told(kit, subject, Remedy.LEFT)
        assert (fact.drift, fact.bindings) == (KINDS.FOREIGN_RIGHT, [str(strange)])
        if how != "wildcard":
            assert fact.topics == [topic]
        assert strange in controller_of(kit, "east").acls()
    assert wait_told(kit, subject, Remedy.ENDED).bindings == [str(strange)]
    assert [found.remedy for found in told(kit, subject)] == [Remedy.LEFT, Remedy.ENDED]


def test_a_right_of_everybody_is_told(kit: Mesh, owner: Domain) -> None:
    _, topic = filled(owner)
    with changed_behind(kit, Acl("*", "read", "topic", topic)):
        kit.wait_for(
            lambda _: any(topic in found.topics for found in told(kit, "principal/*")),
            "everybody's right is told",
        )


def test_a_denial_that_shuts_out_a_reader_is_told_and_left(
    kit: Mesh, owner: Domain, buyer: Domain, application: Application
) -> None:
    product, topic = filled(owner)
    owner.grant(product, buyer.request(product, application.name))
    denial = Acl(application.name, "read", "topic", topic, denies=True)
    with changed_behind(kit, denial):
        fact = wait_told(kit, f"principal/{application.name}", Remedy.LEFT)
        assert (fact.drift, fact.bindings) == (KINDS.FOREIGN_DENIAL, [str(denial)])
        assert application.read(topic) == DENIED
    assert wait_told(kit, f"principal/{application.name}", Remedy.ENDED)
    eventually(lambda: application.read(topic) == [b"one", b"two"], "the reader is back")


def test_a_right_of_an_application_without_a_grant_is_withdrawn_where_it_is_the_meshs(
    kit: Mesh, owner: Domain, application: Application
) -> None:
    _, topic = filled(owner)
    named = Acl(application.name, "read", "topic", topic)
    wide = Acl(application.name, "read", "topic", topic[:-1], prefixed=True)
    subject = f"principal/{application.name}"
    with changed_behind(kit, wide), changed_behind(kit, named):
        fact = wait_told(kit, subject, Remedy.LEFT)
        assert (fact.drift, fact.bindings) == (KINDS.UNGRANTED_RIGHT, [str(wide)])
        repaired = next(one for one in told(kit, subject) if one.remedy is Remedy.REPAIRED)
        assert repaired.bindings == [str(named)]
        acls = controller_of(kit, "east").acls()
        assert (wide in acls, named in acls) == (True, False)
