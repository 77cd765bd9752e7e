"""What comes twice, at once, in transactions or packed: each record is decided once, in order."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer

from mesh_events import avro, topics
from mesh_events.codec import frame
from mesh_events.decisions import (
    Decision,
    GovernorStarted,
    IntentAccepted,
    SchemaIntroduced,
)
from mesh_events.facts import Fact
from mesh_events.intents import (
    ApplicationRegistered,
    DomainFrozen,
    Intent,
    KeyRevoked,
    ProductPublished,
    ProductUpdated,
    intents_login,
)
from mesh_events.record import Record
from tests.integration.governance.cases import as_mesh, chained
from tests.integration.governance.conftest import Scene
from tests.integration.governance.test_bad_input import effect_free, established
from tests.mesh_kit import RawProducer, fresh, publication, register_schema


def test_the_same_intent_emitted_twice_counts_once(scene: Scene) -> None:
    """The second is told as a copy before the first is accepted, where both are read at once."""
    intent = scene.owner.make(
        ApplicationRegistered, application=f"{scene.owner.name}.{fresh('twice')}"
    )
    first, second = scene.owner.emitter.emit(intent), scene.owner.emitter.emit(intent)

    assert scene.kit.code(first) == ""
    assert scene.kit.code(second) == "duplicate_intent"
    told = [scene.owner.emitter.outcome(one) for one in (first, second)]
    assert told[0] == told[1]
    assert told[0].accepted
    made = scene.kit.image().identity.applications[intent.application]
    [accepted] = scene.kit.decisions(first.offset)
    assert scene.kit.entries[made.generation].event is accepted


def test_a_writer_returns_the_record_as_it_stands_on_the_log(scene: Scene) -> None:
    """The governor folds what it appended without reading it back."""
    intent = scene.owner.make(
        ApplicationRegistered, application=f"{scene.owner.name}.{fresh('echo')}"
    )
    written = scene.owner.emitter.append_record(intent)
    scene.kit.decided(written.offset)
    assert scene.kit.records[written.offset] == written


def test_of_two_publications_of_one_name_at_once_one_is_accepted(scene: Scene) -> None:
    product = f"{scene.owner.name}.{fresh('race')}"
    wires = []
    for _ in range(2):
        made = scene.owner.make(ProductPublished, **publication(product, scene.owner.topic()))
        wires.append((made, scene.wire(made, scene.owner.key)))
    with ThreadPoolExecutor(2) as both:
        offsets = list(both.map(lambda pair: scene.write(pair[1]), wires))

    codes = dict(zip(offsets, map(scene.kit.code, offsets), strict=True))
    assert codes == {min(offsets): "", max(offsets): "product_exists"}
    winner = wires[offsets.index(min(offsets))][0]
    assert scene.kit.image().catalog[product].topic == winner.topic


@pytest.mark.parametrize("kind", [IntentAccepted, GovernorStarted, Fact])
def test_a_copy_of_what_the_mesh_said_changes_nothing(
    scene: Scene, kind: type, governor_pid: Callable[[], int | None]
) -> None:
    kit, pid = scene.kit, governor_pid()
    kit.image()
    mesh_keys = {kit.key(name).public for name in ("governor", "controller")}
    record = next(
        kit.records[offset]
        for offset, entry in sorted(kit.entries.items(), reverse=True)
        if isinstance(entry.event, kind) and entry.signer in mesh_keys
    )
    epoch = kit.image().epoch

    offset = scene.stranger.raw.write(record.value, record.key, list(record.headers.items()))
    kit.wait_for(lambda image: image.offset >= offset, "the copy")
    kit.accepted(scene.owner.say(ProductUpdated, product=scene.product, tags=[fresh("on")]))

    assert effect_free(kit, offset)
    assert offset not in kit.images[offset].intents.undecided
    assert kit.image().epoch == epoch
    assert governor_pid() == pid


@pytest.mark.parametrize("back", [0, 1])
def test_a_late_decision_under_the_governors_own_key_counts_for_nothing(
    scene: Scene, back: int, governor_pid: Callable[[], int | None]
) -> None:
    """The record is decided already, or the epoch is not the latest: a zombie speaks so."""
    kit, pid = scene.kit, governor_pid()
    refused = scene.stranger.say(ProductUpdated, product=scene.product, description="mine")
    assert kit.code(refused) == "not_your_domain"
    chain = chained(scene)
    fields = {
        **chain,
        "offset": refused.offset,
        "epoch": chain["epoch"] - back,
        "intent": refused.id,
    }
    late = as_mesh(scene, IntentAccepted, **fields)

    offset = scene.write(scene.wire(late, kit.key("governor")))
    kit.accepted(scene.owner.say(ProductUpdated, product=scene.product, tags=[fresh("on")]))

    assert effect_free(kit, offset)
    assert offset not in kit.images[offset].intents.undecided
    assert kit.images[offset].ignored == kit.before(offset).ignored + 1
    assert governor_pid() == pid


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_compressed_record_is_read_by_everybody(scene: Scene, codec: str) -> None:
    login = scene.kit.login(intents_login(scene.stranger.name))
    packed = RawProducer(login, compression_type=codec)

    assert scene.kit.code(packed.write(b"x" * 5000)) == "garbage"


def test_a_header_name_that_is_no_text_stops_nobody(
    scene: Scene, governor_pid: Callable[[], int | None]
) -> None:
    pid, login = governor_pid(), scene.kit.login(intents_login(scene.stranger.name))
    module = "tests.integration.governance.odd_header"
    files = filter(None, (login.tls.ca, login.tls.certificate) if login.tls else ())
    where = [login.bootstrap_servers, login.user, topics.GOVERNANCE, *map(str, files)]
    done = subprocess.run(
        [sys.executable, "-m", module, *where],
        input=login.password,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    offset = int(done.stdout)
    later = scene.owner.say(ProductUpdated, product=scene.product, tags=[fresh("on")])

    assert scene.kit.code(offset) == "garbage"
    assert scene.kit.code(later) == ""
    assert governor_pid() == pid


@pytest.mark.parametrize("ending", ["commit", "abort"])
def test_records_of_a_transaction_count_whatever_becomes_of_it(scene: Scene, ending: str) -> None:
    name = f"{scene.stranger.name}.{fresh(ending)}"
    made = scene.stranger.make(ApplicationRegistered, application=name)
    wire = scene.wire(made, scene.stranger.key)
    # no login of a domain may begin a transaction on the log: an administrator may
    login = scene.kit.admin_login()
    offsets: list[int] = []
    # a second start gets another epoch: somebody may have taken the producer id with its first one
    for _ in range(2):
        producer = Producer(login.config(transactional_id=f"{scene.stranger.name}.{ending}"))
        producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(
        topics.GOVERNANCE,
        value=wire.value,
        key=wire.key,
        headers=wire.headers,
        on_delivery=lambda _, message: offsets.append(message.offset()),
    )
    producer.flush(20)

    # decided while the transaction is still open: nobody can hold the log up
    assert scene.kit.code(offsets[0]) == ""
    scene.kit.wait_for(
        lambda image: image.identity.credentials[name, "east"].issued, f"the login of {name}"
    )
    getattr(producer, f"{ending}_transaction")(20)
    # the marker is the last thing on the log now, and takes an offset that no reader gets
    assert name in scene.kit.image().identity.applications
    assert scene.kit.code(scene.owner.say(ProductUpdated, product=scene.product, sla=1)) == ""


def test_a_newer_version_introduced_by_the_root_is_understood(scene: Scene) -> None:
    kit, owner = scene.kit, scene.owner
    name = fresh("mood").replace("-", "_")
    extra = f'{{"name":"{name}","type":"string","default":"calm"}}'
    text = avro.text_of("ProductUpdated").replace('"fields":[', f'"fields":[{extra},', 1)
    schema_id = register_schema(kit.endpoints, fresh("newer"), text)
    introduced = SchemaIntroduced(
        meta=kit.operator.meta(),
        schema_id=schema_id,
        name="mesh.ProductUpdated",
        fingerprint=avro.fingerprint(text),
        schema_text=text,
    )
    tag = fresh("newer")
    update = owner.make(ProductUpdated, product=scene.product, tags=[tag])
    value = frame(schema_id, text, {**update.model_dump(), name: "curious"})
    wire = scene.wire(update, owner.key)
    signature = owner.key.sign(kit.profile.root_key, wire.key, value)
    headers = [
        (header, signature if header == "mesh_signature" else found)
        for header, found in wire.headers
    ]

    early = owner.raw.write(value, wire.key, headers)
    assert kit.code(early) == "unknown_schema"
    kit.operator.append(introduced, kit.key("root"))
    assert kit.code(owner.raw.write(value, wire.key, headers)) == ""

    assert kit.image().catalog[scene.product].tags == (tag,)
    # what was set aside before stays so, now that it could be read
    assert established(kit.images[early])[:-1] == established(kit.before(early))[:-1]


def test_what_a_domain_says_behind_its_keys_end_is_set_aside(scene: Scene) -> None:
    domain = scene.kit.register_domain("left")
    last = domain.say(
        KeyRevoked, domain=domain.name, public_key=domain.key.public, reason="we leave"
    )
    late = domain.say(ApplicationRegistered, application=f"{domain.name}.late")

    assert scene.kit.code(last) == ""
    assert scene.kit.code(late) == "revoked_key"


def test_a_domain_that_says_very_much_does_not_hold_up_the_others(scene: Scene) -> None:
    kit, flooding = scene.kit, scene.stranger
    # a check of either costs the same, so that only their turns can make a difference
    wires = []
    # more than a round of checks makes, which may have begun before the owner's record was read
    for one in [flooding] * 400 + [scene.owner]:
        name = f"{one.name}.{fresh('flood')}"
        made = one.make(ProductPublished, **publication(name, name))
        wires.append(scene.wire(made, one.key))
    # all by one producer, so that the governor reads the last while the first are undecided
    *flood, said = kit.raw.write_all((wire.value, wire.key, list(wire.headers)) for wire in wires)

    assert {kit.code(offset) for offset in (*flood, said)} == {"unknown_topic"}
    decided = {
        entry.event.offset: offset
        for offset, entry in kit.entries.items()
        if isinstance(entry.event, Decision)
    }
    behind = [offset for offset in flood if decided[offset] > decided[said]]
    # each domain has its turn: of the flood, about as many were checked meanwhile as of the owner
    assert len(behind) > len(flood) / 2


def test_a_flood_of_garbage_is_decided_in_ranges(scene: Scene) -> None:
    kit = scene.kit
    intent = scene.wire(
        scene.owner.make(ProductUpdated, product=scene.product, tags=[fresh("amid")]),
        scene.owner.key,
    )
    good = (intent.value, intent.key, list(intent.headers))
    garbage = (b"garbage", b"", [])
    *flood, said, last = kit.raw.write_all([*[garbage] * 2000, good, garbage])

    assert kit.code(said) == ""
    assert {kit.code(offset) for offset in (flood[0], flood[-1], last)} == {"garbage"}
    decisions = {id(kit.decisions(offset)[0]) for offset in (*flood, last)}
    assert len(decisions) < len(flood) / 10


def test_a_flood_of_copies_keeps_nobodys_intent_out_and_delays_no_freeze(scene: Scene) -> None:
    """Anybody with a login for the log can append what others have signed."""
    kit, victim = scene.kit, scene.kit.register_domain("copied")
    kit.accepted(victim.say(ApplicationRegistered, application=f"{victim.name}.first"))
    signers = (victim.key.public, kit.key("operator").public)
    copied = [newest(scene, signer) for signer in signers]
    until = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    frozen = {"domain": scene.kit.register_domain("quiet").name, "until": until, "reason": "a test"}
    honest = [
        scene.wire(
            victim.make(ApplicationRegistered, application=f"{victim.name}.second"), victim.key
        ),
        scene.wire(DomainFrozen(meta=kit.operator.meta(), **frozen), kit.key("operator")),
    ]
    *copies, said, freeze = kit.raw.write_all(
        [
            *[(one.value, one.key, list(one.headers.items())) for one in copied * 2000],
            *[(wire.value, wire.key, list(wire.headers)) for wire in honest],
        ]
    )

    assert {kit.code(offset) for offset in (said, freeze)} == {""}
    assert {kit.code(offset) for offset in (copies[0], copies[-1])} == {"duplicate_intent"}
    # who waits behind the copies would have had to wait for a decision on each
    kit.decided(copies[-1])
    decisions = [
        entry.event
        for entry in kit.entries.values()
        if isinstance(entry.event, Decision) and copies[0] <= entry.event.offset <= copies[-1]
    ]
    assert len(decisions) < len(copies) / 10
    waiting = kit.images[freeze].intents.waiting
    assert waiting.get(victim.name, 0) <= 1
    assert waiting.get("mesh/operator", 0) <= 1


def newest(scene: Scene, signer: str) -> Record:
    """The last intent that a key has signed, as it stands on the log."""
    kit = scene.kit
    kit.image()
    offset = max(
        offset
        for offset, entry in kit.entries.items()
        if entry.signer == signer and isinstance(entry.event, Intent)
    )
    return kit.records[offset]
