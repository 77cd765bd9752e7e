"""What of a cluster's rights is drift: compared with a plain model of Kafka's authorizer."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_events.connectors import ConnectorAdded
from mesh_events.facts import DriftKind
from mesh_events.intents import AccessRevoked
from processors import bootstrap
from processors.clusters import drift
from processors.clusters.drift import Finding, of_wish, of_wishes, unexpected, wrong
from processors.clusters.rights import Acl, Binding, Operation, Resource, Wish, reader
from processors.connect.principals import offsets_of, principal_of
from processors.controllers.flows.starts import Starts
from processors.controllers.rights.wishes import desired
from projections.connectors import config
from projections.image import Image
from projections.links import Desired, State
from tests import sample_history as story
from tests.memory_log import MemoryLog

TOPIC = "east.users"


def _image() -> Image:
    log = MemoryLog()
    story.published(log)
    story.granted(log)
    story.settle(log)
    story.granted(log, "north")
    story.settle(log)
    return log.image


IMAGE = _image()
WISHES = list(desired(IMAGE))
EAST = drift.scene(IMAGE, "east", WISHES, bootstrap.rights())
GOOD = {Acl.of(binding) for binding in EAST.known}
NAMES = ["east", "west", "west.app", "north.app", "mallory", "*", "mesh.governor", "mesh.odd"]
TOPICS = [TOPIC, "east.other", "mallory.own", "mesh.governance"]
STRANGE = st.builds(
    Acl,
    principal=st.sampled_from(NAMES),
    operation=st.sampled_from(
        ["read", "write", "all", "describe", "alter", "alter-configs", "delete", "create"]
    ),
    resource=st.sampled_from(["topic", "topic", "group", "cluster"]),
    name=st.sampled_from(["*", *TOPICS, "east.", "eas", "east.use", "mesh.", "m"]),
    prefixed=st.booleans(),
    host=st.sampled_from(["*", "10.0.0.1"]),
    denies=st.just(value=False),
)


WRITER = f"mesh.link.{story.LINK}.0123abcd"


def started(**changes: Any) -> Image:
    """The image with the link changed."""
    link = replace(IMAGE.links[story.LINK], **changes)
    return IMAGE._replace(links=IMAGE.links.set(story.LINK, link))


def rights_of(principal: str) -> list[Acl]:
    """What one who reads the product may do."""
    return [Acl.of(binding) for binding in reader(principal, TOPIC)]


def allowed(acls: Iterable[Acl], principal: str, operation: str, topic: str) -> bool:
    """Whether Kafka lets a principal do it, from some host."""
    return any(
        acl.principal in ("*", principal)
        and acl.operation in ("all", operation)
        and acl.resource == "topic"
        and (topic.startswith(acl.name) if acl.prefixed else acl.name in ("*", topic))
        for acl in acls
        if not acl.denies
    )


@given(st.sets(STRANGE, max_size=6))
def test_whoever_can_do_more_than_the_log_says_is_found(strange: set[Acl]) -> None:
    acls = GOOD | strange
    found = {one.principal for one in unexpected(EAST, IMAGE, acls)}
    for principal in NAMES:
        for topic in EAST.topics:
            for operation in ("read", "write", "alter", "delete", "alter-configs"):
                more = allowed(acls, principal, operation, topic)
                if more and not allowed(GOOD, principal, operation, topic):
                    assert {principal, "*"} & found, (principal, operation, topic)


@given(st.sets(STRANGE, max_size=6))
def test_what_the_log_explains_or_what_is_not_the_meshs_is_not_found(strange: set[Acl]) -> None:
    for one in unexpected(EAST, IMAGE, GOOD | strange):
        assert not one.acls & GOOD
        for acl in one.acls:
            if acl.resource != "topic":
                continue  # tests/unit/processors/acls
            assert any(allowed([acl], one.principal, acl.operation, topic) for topic in EAST.topics)
            assert acl.operation != "describe"


@given(st.sets(STRANGE, max_size=6))
def test_only_rights_by_name_of_the_meshs_own_principals_may_be_withdrawn(
    strange: set[Acl],
) -> None:
    for one in unexpected(EAST, IMAGE, GOOD | strange):
        for acl in one.repairable:
            assert acl.principal in {"east", "west", "north", "west.app", "north.app"}
            assert acl not in GOOD
            if acl.resource == "topic":
                assert not acl.prefixed
                assert acl.name in EAST.topics


PAIRS = st.builds(
    Binding,
    st.sampled_from(["a.one", "b.two"]),
    st.sampled_from([Operation.READ, Operation.DESCRIBE]),
    st.just(Resource.TOPIC),
    st.sampled_from(["x.1", "x.2"]),
)
SOME = st.frozensets(PAIRS, max_size=4)


def wish(subject: str, bindings: frozenset[Binding], *, wanted: bool, reported: bool) -> Wish:
    return Wish(subject, "east", 7, subject, "a.one", bindings, wanted, reported)


@given(
    st.lists(st.builds(wish, st.uuids().map(str), SOME, wanted=st.booleans(),
                       reported=st.booleans()), max_size=6),
    st.sets(PAIRS),
)  # fmt: skip
def test_after_the_repairs_nothing_differs_and_nothing_else_has_changed(
    wishes: list[Wish], before: set[Binding]
) -> None:
    keep = {(one.cluster, right) for one in wishes if one.wanted for right in one.bindings}
    actual = set(before)
    for one in sorted(wishes, key=lambda one: one.wanted):
        differs = wrong(one, actual, keep)
        actual = actual | differs if one.wanted else actual - differs
    assert not list(of_wishes(wishes, map(Acl.of, actual)))
    wanted = {right for _, right in keep}
    unwanted = {right for one in wishes if not one.wanted for right in one.bindings}
    assert actual == (before - unwanted) | wanted


def test_what_the_log_has_not_told_yet_is_no_drift() -> None:
    one = wish("r", reader("a.one", "x.1"), wanted=True, reported=False)
    assert not list(of_wishes([one], []))
    [found] = of_wishes([replace(one, reported=True)], [])
    assert (found.kind, found.topics) == (DriftKind.RIGHT_MISSING, ("x.1",))


def test_a_right_that_is_called_off_is_told_as_returned_and_not_as_ungranted() -> None:
    log = MemoryLog()
    story.published(log)
    request = story.granted(log, "north")
    story.settle(log)
    access = log.image.access.requests[request]
    story.answer(log, AccessRevoked, request, reason="r")
    log.govern()
    story.settle(log)
    image = log.image
    wishes = [one for one in desired(image) if one.cluster == access.cluster]
    seen = drift.scene(image, access.cluster, wishes)
    back = {Acl.of(binding) for binding in reader(access.application, access.topic)}
    known = {Acl.of(binding) for binding in seen.known}
    assert not list(unexpected(seen, image, back | known))
    [found] = of_wishes(wishes, back | known)
    assert (found.kind, found.acls) == (DriftKind.RIGHT_RETURNED, back)


READER = next(one for one in WISHES if one.wanted and one.bindings & reader("west.app", TOPIC))


@pytest.mark.parametrize(
    "denial",
    [
        Acl("west.app", "read", "topic", TOPIC, denies=True),
        Acl("west.app", "describe", "topic", TOPIC, denies=True),
        Acl("*", "all", "topic", "*", denies=True),
        Acl("west.app", "read", "topic", "east", prefixed=True, denies=True, host="10.0.0.1"),
        Acl("west.app", "read", "group", "west.app.mine", denies=True),
        Acl("west.app", "all", "group", "west", prefixed=True, denies=True),
    ],
    ids=str,
)
def test_a_denial_that_takes_from_a_known_right_is_found(denial: Acl) -> None:
    wishes = [one for one in WISHES if one.cluster == READER.cluster]
    seen = drift.scene(IMAGE, READER.cluster, wishes)
    [found] = unexpected(seen, IMAGE, [denial])
    assert found.kind is DriftKind.FOREIGN_DENIAL


@pytest.mark.parametrize(
    "denial",
    [
        Acl("mallory", "all", "topic", "*", denies=True),
        Acl("west.app", "write", "topic", TOPIC, denies=True),
        Acl("west.app", "read", "topic", "mallory.own", denies=True),
        Acl("west.app", "read", "group", "west.app2", denies=True),
    ],
    ids=str,
)
def test_a_denial_of_what_nobody_may_is_none_of_the_meshs_business(denial: Acl) -> None:
    wishes = [one for one in WISHES if one.cluster == READER.cluster]
    assert not list(unexpected(drift.scene(IMAGE, READER.cluster, wishes), IMAGE, [denial]))


def test_a_denial_to_describe_takes_the_reading_too() -> None:
    denial = Acl("mesh.governor", "describe", "topic", "mesh.governance", denies=True)
    [found] = unexpected(EAST, IMAGE, [denial])
    assert found.kind is DriftKind.FOREIGN_DENIAL


def test_a_prefix_is_more_than_the_topic_of_that_name() -> None:
    wide = Acl("north.app", "read", "topic", TOPIC, prefixed=True)
    [found] = unexpected(EAST, IMAGE, [wide])
    assert (found.kind, found.acls) == (DriftKind.UNGRANTED_RIGHT, {wide})
    ending = replace(EAST, topics=frozenset({"east.users-"}))
    [found] = unexpected(ending, IMAGE, [replace(wide, name="east.users-")])
    assert not found.repairable


@pytest.mark.parametrize("operation", ["write", "delete", "alter", "alter-configs", "all"])
def test_what_runs_may_read_its_source_and_do_nothing_else_with_it(operation: str) -> None:
    image = started(state=State.ACTIVE, principal=WRITER)
    more = Acl(WRITER, operation, "topic", TOPIC)
    [found] = unexpected(EAST, image, [*rights_of(WRITER), more])
    assert (found.kind, found.acls) == (DriftKind.UNGRANTED_RIGHT, {more})


@pytest.mark.parametrize(
    "denial",
    [
        Acl(WRITER, "read", "topic", TOPIC, denies=True),
        Acl(WRITER, "all", "topic", "*", denies=True),
        Acl("*", "all", "group", WRITER, denies=True),
    ],
)
def test_a_denial_that_shuts_out_what_runs_is_found(denial: Acl) -> None:
    image = started(state=State.ACTIVE, principal=WRITER)
    rights = [*rights_of(WRITER), Acl(WRITER, "read", "group", WRITER)]
    [found] = unexpected(EAST, image, [*rights, denial])
    assert (found.kind, found.acls) == (DriftKind.FOREIGN_DENIAL, {denial})
    assert not list(unexpected(EAST, image, [*rights, replace(denial, principal="nobody")]))


def test_a_links_writer_may_do_what_it_does_at_its_own_ends_only() -> None:
    image, ends = started(state=State.ACTIVE, principal=WRITER), set(rights_of(WRITER))
    assert not list(unexpected(EAST, image, ends))
    assert not list(unexpected(EAST, image, ends, Starts()))
    [found] = unexpected(EAST, image, [Acl(WRITER, "read", "topic", "mesh.governance")])
    assert found.kind is DriftKind.UNGRANTED_RIGHT
    [found] = unexpected(EAST, image, [Acl(f"{WRITER}x", "read", "topic", TOPIC)])
    assert found.kind is DriftKind.FOREIGN_RIGHT


def test_a_strangers_right_on_the_positions_of_a_domains_sources_is_found() -> None:
    log = MemoryLog()
    story.domains(log)
    log.say(ConnectorAdded, "east", **story.connector())
    story.settle(log)
    scene = drift.scene(log.image, "east", desired(log.image), bootstrap.rights())
    [source] = log.image.connectors.values()
    own = Acl(principal_of(source.id), "write", "topic", offsets_of("east"))
    assert not list(unexpected(scene, log.image, [own]))
    [found] = unexpected(scene, log.image, [replace(own, principal="mallory")])
    assert found.kind is DriftKind.FOREIGN_RIGHT
    [found] = unexpected(scene, log.image, [replace(own, principal="east")])
    assert found.kind is DriftKind.UNGRANTED_RIGHT


def test_a_sinks_right_on_the_positions_of_sources_is_found() -> None:
    log = MemoryLog()
    story.domains(log)
    log.say(ConnectorAdded, "east", **story.connector())
    story.settle(log)
    [source] = log.image.connectors.values()
    scene = drift.scene(log.image, "east", desired(log.image), bootstrap.rights())
    sink = replace(source, config={"topics": TOPIC})
    image = log.image._replace(connectors=log.image.connectors.set(source.id, sink))
    own = Acl(principal_of(source.id), "read", "topic", TOPIC)
    assert not list(unexpected(scene, image, [own]))
    [found] = unexpected(scene, image, [replace(own, name=offsets_of("east"))])
    assert found.kind is DriftKind.UNGRANTED_RIGHT


def test_a_connectors_config_is_read_once_in_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was read for each of a sink's rights: 200 of them tell of 200 topics each."""
    log = MemoryLog()
    story.domains(log)
    log.say(ConnectorAdded, "east", **story.connector())
    story.settle(log)
    [source] = log.image.connectors.values()
    topics = [f"east.t{number}" for number in range(20)]
    sink = replace(source, config={"topics": ",".join(topics)})
    image = log.image._replace(connectors=log.image.connectors.set(source.id, sink))
    scene = drift.scene(image, "east", desired(image), bootstrap.rights())
    read, real = list[object](), config.reads
    monkeypatch.setattr(config, "reads", lambda given: read.append(given) or real(given))
    rights = [Acl(principal_of(source.id), "read", "topic", name) for name in topics]
    assert not list(unexpected(scene, image, rights))
    assert len(read) == 1


def test_a_login_that_is_only_called_like_a_links_writer_is_found_and_its_rights_are_taken() -> (
    None
):
    """The log knows the link, and no start of it had that name."""
    [found] = unexpected(EAST, IMAGE, rights_of(WRITER), Starts())
    assert found.kind is DriftKind.UNGRANTED_RIGHT
    assert found.repairable == [acl for acl in sorted(rights_of(WRITER)) if acl.operation == "read"]


@pytest.mark.parametrize("flow", ["mesh.link.east.people@west", "mesh.sql.east.users@west"])
def test_a_login_that_is_called_after_nothing_on_the_log_is_a_stranger(flow: str) -> None:
    [found] = unexpected(EAST, IMAGE, rights_of(f"{flow}.0123abcd"), Starts())
    assert found.kind is DriftKind.FOREIGN_RIGHT
    assert not found.repairable


def test_a_start_that_is_under_way_explains_its_rights_until_they_are_withdrawn() -> None:
    starts, other = Starts(), f"mesh.link.{story.LINK}.0123abce"
    starts.begin(story.LINK, WRITER)
    starts.begin(story.LINK, other)
    assert not list(unexpected(EAST, IMAGE, [*rights_of(WRITER), *rights_of(other)], starts))
    starts.keep(story.LINK, other)
    assert list(unexpected(EAST, IMAGE, rights_of(WRITER), starts))
    assert not list(unexpected(EAST, IMAGE, rights_of(other), starts))
    starts.forget(story.LINK)
    assert list(unexpected(EAST, IMAGE, rights_of(other), starts))


def test_who_does_not_know_what_is_being_started_finds_no_rights_of_a_link_that_may_be() -> None:
    assert list(unexpected(EAST, started(state=State.ACTIVE), rights_of(WRITER)))
    assert not list(unexpected(EAST, started(state=State.CREATED), rights_of(WRITER)))
    paused = started(state=State.CREATED, desired=Desired.PAUSED)
    assert list(unexpected(EAST, paused, rights_of(WRITER)))


def test_a_finding_of_a_very_long_name_is_told_shortly_and_apart_from_others() -> None:
    names = ["m" * 30_000 + end for end in "ab"]
    found: list[Finding] = list(
        unexpected(EAST, IMAGE, [Acl(name, "read", "topic", TOPIC) for name in names])
    )
    assert len({one.subject for one in found}) == 2
    assert all(len(one.subject) < 250 for one in found)


def test_half_of_a_surrogate_pair_in_a_very_long_name_ends_no_look() -> None:
    acl = Acl("m" * 300 + "\ud800", "read", "topic", TOPIC)
    (found,) = unexpected(EAST, IMAGE, [acl])
    assert found.subject.encode()


def test_a_wish_becomes_a_finding_with_its_topics() -> None:
    found = of_wish(READER, READER.bindings)
    assert found.topics == tuple(sorted({b.name for b in READER.bindings if b.resource == "topic"}))
