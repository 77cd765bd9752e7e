"""Everything that may not be said on the log, and the code with which it is answered.

A case writes one record and returns its offset. All but a few are written with the stranger's
login: who may write to the topic is not thereby anybody.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from mesh_events import avro
from mesh_events.decisions import (
    GovernorStarted,
    IntentAccepted,
    IntentQuarantined,
    MeshFounded,
    SchemaIntroduced,
)
from mesh_events.facts import AclApplied, CheckPassed, CredentialsIssued
from mesh_events.intents import (
    AccessDenied,
    AccessGranted,
    AccessRequested,
    AccessRevoked,
    ApplicationRegistered,
    ClusterRegistered,
    CredentialsRequested,
    DomainRegistered,
    KeyRegistered,
    ProductPublished,
    ProductUpdated,
)
from mesh_events.meta import Event, new_id
from mesh_events.rows import ProductRow
from mesh_events.signing import SigningKey
from projections.rows import product_row
from tests.integration.governance.conftest import Scene
from tests.mesh_kit import Domain, fresh, publication, register_schema

Case = Callable[[Scene], int]
CASES: dict[str, tuple[str, Case]] = {}
"""Name -> (code, case)."""


def case(code: str) -> Callable[[Case], Case]:
    def take(written: Case) -> Case:
        CASES[written.__name__] = (code, written)
        return written

    return take


def update(scene: Scene, by: Domain, **meta: Any) -> ProductUpdated:
    """An intent about the owner's product, spoken by anybody."""
    made = by.make(ProductUpdated, product=scene.product, description="mine now")
    return made.model_copy(update={"meta": made.meta.model_copy(update=meta)})


def as_mesh(scene: Scene, kind: type[Event], **fields: Any) -> Event:
    """An event in the name of the mesh."""
    meta = scene.stranger.emitter.meta().model_copy(update={"domain": "mesh"})
    return kind.model_validate({"meta": meta, **fields})


def of_stranger(scene: Scene, event: Event) -> int:
    return scene.write(scene.wire(event, scene.stranger.key))


# --- who speaks for whom ---------------------------------------------------------------------


@case("not_your_domain")
def somebody_elses_product(scene):
    return of_stranger(scene, update(scene, scene.stranger))


@case("not_your_domain")
def in_somebody_elses_name_under_the_own_key(scene):
    return of_stranger(scene, update(scene, scene.owner))


@case("unknown_key")
def under_a_key_that_nobody_has(scene):
    return scene.write(scene.wire(update(scene, scene.owner), SigningKey.generate()))


@case("unknown_key")
def an_intent_under_the_root_key(scene):
    return scene.write(scene.wire(update(scene, scene.owner), scene.kit.key("root")))


@case("revoked_key")
def under_a_revoked_key(scene):
    return scene.write(scene.wire(update(scene, scene.owner), scene.lost_key))


@case("unsigned")
def unsigned(scene):
    wire = scene.wire(update(scene, scene.owner), scene.owner.key)
    bare = [(name, value) for name, value in wire.headers if not name.startswith("mesh_")]
    return scene.write(wire._replace(headers=bare))


@case("bad_signature")
def with_the_signature_of_another_record(scene):
    wire = scene.wire(update(scene, scene.owner), scene.owner.key)
    other = scene.wire(update(scene, scene.owner), scene.owner.key)
    return scene.write(wire._replace(headers=[*wire.headers[:-1], other.headers[-1]]))


@case("bad_signature")
def with_a_value_changed_after_signing(scene):
    wire = scene.wire(update(scene, scene.owner), scene.owner.key)
    return scene.write(wire._replace(value=wire.value.replace(b"mine now", b"mine, ha")))


@case("bad_signature")
def with_a_signer_that_is_no_key(scene):
    return scene.write(headers_of(scene, mesh_key=b"the owner"))


@case("operators_only")
def a_domain_registered_by_a_domain(scene):
    made = scene.stranger.make(
        DomainRegistered,
        domain=fresh("own"),
        owner="me",
        cluster="east",
        public_key=SigningKey.generate().public,
    )
    return of_stranger(scene, made)


@case("operators_only")
def a_cluster_registered_by_a_domain(scene):
    made = scene.stranger.make(
        ClusterRegistered,
        cluster="east",
        bootstrap_servers="127.0.0.1:1",
        admin_user="admin",
        admin_password="env:NONE",
    )
    return of_stranger(scene, made)


@case("not_your_domain")
def a_key_for_somebody_else(scene):
    public = SigningKey.generate().public
    return of_stranger(
        scene, scene.stranger.make(KeyRegistered, domain=scene.owner.name, public_key=public)
    )


@case("not_your_domain")
def somebody_elses_credentials(scene):
    made = scene.stranger.make(CredentialsRequested, principal=scene.owner.name, cluster="east")
    return of_stranger(scene, made)


@case("not_your_domain")
def somebody_elses_application(scene):
    made = scene.stranger.make(ApplicationRegistered, application=f"{scene.owner.name}.app")
    return of_stranger(scene, made)


# --- forged in the name of the mesh ----------------------------------------------------------


@case("forged")
def a_forged_decision(scene):
    return of_stranger(scene, forged_decision(scene))


@case("forged")
def a_forged_quarantine(scene):
    fields = {"offset": 0, "epoch": scene.kit.image().epoch, "code": "garbage", "reason": "so"}
    return of_stranger(scene, as_mesh(scene, IntentQuarantined, **fields))


@case("forged")
def a_decision_under_the_keepers_key(scene):
    return scene.write(scene.wire(forged_decision(scene), scene.kit.key("keeper")))


@case("forged")
def a_forged_fact(scene):
    image = scene.kit.image()
    fields = {
        "subject": scene.request,
        "cluster": "east",
        "generation": image.access.requests[scene.request].generation,
        "bindings": [],
    }
    return of_stranger(scene, as_mesh(scene, AclApplied, **fields))


@case("forged")
def a_forged_check(scene):
    fields = {"offset": scene.kit.image().offset, "check": "topic_exists", "evidence": {}}
    return of_stranger(scene, as_mesh(scene, CheckPassed, **fields))


@case("forged")
def a_fact_under_the_governors_key(scene):
    fields = {
        "principal": scene.owner.name,
        "cluster": "east",
        "generation": 1,
        "reference": "file:/etc/passwd",
    }
    event = as_mesh(scene, CredentialsIssued, **fields)
    return scene.write(scene.wire(event, scene.kit.key("governor")))


@case("forged")
def a_forged_start_of_a_governor(scene):
    return of_stranger(scene, as_mesh(scene, GovernorStarted, version="9"))


@case("forged")
def a_forged_schema(scene):
    text = avro.text_of("ProductUpdated").replace("mesh.", "mess.")
    fields = {
        "schema_id": scene.kit.registry.schema_id("ProductUpdated"),
        "name": "mesh.ProductUpdated",
        "fingerprint": avro.fingerprint(text),
        "schema_text": text,
    }
    return of_stranger(scene, as_mesh(scene, SchemaIntroduced, **fields))


@case("forged")
def a_second_foundation(scene):
    public = scene.stranger.key.public
    keys = dict.fromkeys(("operator_key", "governor_key", "keeper_key"), public)
    event = as_mesh(scene, MeshFounded, mesh="mine", governance_cluster="east", **keys)
    return scene.write(scene.wire(event, scene.kit.key("root")))


def forged_decision(scene: Scene) -> Event:
    fields = {"offset": 0, "epoch": scene.kit.image().epoch, "intent": new_id()}
    return as_mesh(scene, IntentAccepted, **fields)


# --- access ----------------------------------------------------------------------------------


@case("not_your_domain")
def a_grant_by_somebody_else(scene):
    made = scene.stranger.make(AccessGranted, product=scene.product, request=scene.request)
    return of_stranger(scene, made)


@case("own_request")
def a_grant_by_the_requester(scene):
    made = scene.buyer.make(AccessGranted, product=scene.product, request=scene.request)
    return scene.write(scene.wire(made, scene.buyer.key), scene.buyer)


@case("not_your_domain")
def a_denial_by_somebody_else(scene):
    made = scene.stranger.make(
        AccessDenied, product=scene.product, request=scene.request, reason="no"
    )
    return of_stranger(scene, made)


@case("not_requested")
def a_grant_of_a_revoked_request(scene):
    made = scene.owner.make(AccessGranted, product=scene.product, request=scene.revoked)
    return scene.write(scene.wire(made, scene.owner.key), scene.owner)


@case("not_granted")
def a_revocation_of_what_was_not_granted(scene):
    made = scene.owner.make(
        AccessRevoked, product=scene.product, request=scene.request, reason="no"
    )
    return scene.write(scene.wire(made, scene.owner.key), scene.owner)


@case("unknown_request")
def a_grant_for_a_product_that_does_not_exist(scene):
    made = scene.owner.make(
        AccessGranted, product=f"{scene.owner.name}.nothing", request=scene.request
    )
    return scene.write(scene.wire(made, scene.owner.key), scene.owner)


@case("unknown_product")
def a_request_for_a_product_that_does_not_exist(scene):
    made = scene.buyer.make(
        AccessRequested,
        product=f"{scene.owner.name}.nothing",
        application=scene.application,
        reason="to see",
    )
    return scene.write(scene.wire(made, scene.buyer.key), scene.buyer)


@case("request_open")
def a_second_request(scene):
    made = scene.buyer.make(
        AccessRequested, product=scene.product, application=scene.application, reason="to see"
    )
    return scene.write(scene.wire(made, scene.buyer.key), scene.buyer)


# --- repeated, late, early -------------------------------------------------------------------


@case("duplicate_intent")
def an_earlier_intent_copied_byte_by_byte(scene):
    found = min(
        offset
        for offset, entry in scene.kit.entries.items()
        if isinstance(entry.event, KeyRegistered) and entry.signer == scene.owner.key.public
    )
    record = scene.kit.records[found]
    return scene.stranger.raw.write(record.value, record.key, list(record.headers.items()))


@case("stale_intent")
def an_intent_made_two_hours_ago(scene):
    return owners(scene, time=datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2))


@case("clock_ahead")
def an_intent_from_the_future(scene):
    return owners(scene, time=datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1))


@case("stale_intent")
def an_intent_from_the_year_one(scene):
    return owners(scene, time=datetime(1, 1, 1, tzinfo=UTC))


@case("invalid_id")
def an_id_that_is_no_uuid(scene):
    return owners(scene, id="1")


@case("invalid_id")
def a_second_spelling_of_an_id(scene):
    return owners(scene, id=new_id().upper())


@case("invalid_id")
def an_id_of_300_000_characters(scene):
    return owners(scene, id="x" * 200_000)


@case("text_too_long")
def a_correlation_of_300_000_characters(scene):
    return owners(scene, correlation="x" * 300_000)


@case("text_too_long")
def an_actor_of_400_000_characters(scene):
    return owners(scene, actor="x" * 400_000)


@case("invalid_name")
def a_name_of_400_000_control_characters(scene):
    made = scene.owner.make(ProductPublished, **publication("\x00" * 400_000, "t"))
    return scene.write(scene.wire(made, scene.owner.key), scene.owner)


def owners(scene: Scene, **meta: Any) -> int:
    """An intent of the owner itself, well signed, with something wrong in `meta`."""
    return scene.write(scene.wire(update(scene, scene.owner, **meta), scene.owner.key))


# --- publications ----------------------------------------------------------------------------


@case("internal_topic")
def a_publication_of_the_log_itself(scene):
    return published(scene, "mesh.governance")


@case("internal_topic")
def a_publication_of_kafkas_own_topic(scene):
    return published(scene, "__consumer_offsets")


@case("foreign_topic")
def a_publication_of_somebody_elses_topic(scene):
    return published(scene, scene.kit.image().catalog[scene.product].topic)


@case("foreign_topic")
def a_publication_under_a_prefix_without_delimiter(scene):
    return published(scene, f"{scene.stranger.name}2.orders")


@case("unknown_topic")
def a_publication_of_a_topic_that_does_not_exist(scene):
    return published(scene, f"{scene.stranger.name}.nothing")


@case("no_schema")
def a_publication_of_a_topic_without_schema(scene):
    return published(scene, scene.stranger.topic(schema=None))


@case("not_acknowledged")
def a_publication_without_the_promise(scene):
    return published(scene, f"{scene.stranger.name}.orders", acknowledged=False)


@case("product_exists")
def a_publication_of_a_published_product(scene):
    topic = scene.kit.image().catalog[scene.product].topic
    made = scene.owner.make(ProductPublished, **publication(scene.product, topic))
    return scene.write(scene.wire(made, scene.owner.key), scene.owner)


def published(scene: Scene, topic: str, **more: Any) -> int:
    fields = {**publication(f"{scene.stranger.name}.{fresh('new')}", topic), **more}
    return of_stranger(scene, scene.stranger.make(ProductPublished, **fields))


# --- bytes -----------------------------------------------------------------------------------


def raw(scene: Scene, value: bytes | None, **more: Any) -> int:
    return scene.stranger.raw.write(value, **more)


@case("garbage")
def garbage(scene):
    return raw(scene, b"\xff\xfe{not avro", key=b"\xff\xfe")


@case("garbage")
def no_value(scene):
    return raw(scene, None)


@case("garbage")
def nothing_at_all(scene):
    return raw(scene, None, key=None)


@case("garbage")
def an_empty_value(scene):
    return raw(scene, b"")


@case("garbage")
def a_value_cut_short(scene):
    return raw(scene, scene.wire(update(scene, scene.owner), scene.owner.key).value[:-3])


@case("garbage")
def a_value_with_bytes_behind_it(scene):
    return raw(scene, scene.wire(update(scene, scene.owner), scene.owner.key).value + b"x")


@case("garbage")
def a_time_that_no_calendar_has(scene):
    # after id, a string of 36 characters, comes the time as a long of 6 bytes
    value = scene.wire(update(scene, scene.owner), scene.owner.key).value
    start = 5 + 1 + 36
    return raw(scene, value[:start] + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" + value[start + 6 :])


@case("garbage")
def text_that_is_not_utf8(scene):
    value = scene.wire(update(scene, scene.owner), scene.owner.key).value
    return raw(scene, value.replace(b"mine now", b"\xff" * 8))


@case("too_large")
def a_value_of_two_mebibytes(scene):
    return raw(scene, b"\x00" * (2 * 1024 * 1024))


@case("unknown_schema")
def an_unknown_schema_id(scene):
    return raw(scene, b"\x00" + (2_000_000_000).to_bytes(4, "big") + b"abc")


@case("unknown_schema")
def a_version_that_was_not_introduced(scene):
    text = avro.text_of("ProductUpdated").replace('"fields":[', f'"fields":[{EXTRA},', 1)
    subject = f"{scene.stranger.name}.{fresh('other')}"
    schema_id = register_schema(scene.kit.endpoints, subject, text)
    value = scene.wire(update(scene, scene.owner), scene.owner.key).value
    return raw(scene, b"\x00" + schema_id.to_bytes(4, "big") + value[5:])


EXTRA = '{"name":"extra","type":"string","default":""}'


@case("unknown_type")
def a_row_in_place_of_an_event(scene):
    from mesh_events.codec import frame

    row = product_row(scene.kit.image().catalog[scene.product])
    name = ProductRow.type_name()
    value = frame(scene.kit.registry.schema_id(name), avro.text_of(name), row.model_dump())
    return raw(scene, value)


def headers_of(scene: Scene, **changed: bytes | None) -> Any:
    """A good record of the owner with some headers replaced, or left out where None."""
    wire = scene.wire(update(scene, scene.owner), scene.owner.key)
    kept = [(name, changed.get(name, value)) for name, value in wire.headers]
    return wire._replace(headers=[pair for pair in kept if pair[1] is not None])


@case("header_mismatch")
def another_type_in_the_header(scene):
    return scene.write(headers_of(scene, ce_type=b"mesh.AccessGranted.intent"))


@case("header_mismatch")
def another_id_in_the_header(scene):
    return scene.write(headers_of(scene, ce_id=new_id().encode()))


@case("header_missing")
def no_type_in_the_headers(scene):
    return scene.write(headers_of(scene, ce_type=None))


@case("header_missing")
def no_headers(scene):
    wire = scene.wire(update(scene, scene.owner), scene.owner.key)
    return scene.write(wire._replace(headers=[]))


@case("key_mismatch")
def the_key_of_another_thing(scene):
    wire = scene.wire(update(scene, scene.owner), scene.owner.key)
    return scene.write(wire._replace(key=b"product/other/thing"))


@case("key_mismatch")
def no_key(scene):
    wire = scene.wire(update(scene, scene.owner), scene.owner.key)
    return scene.stranger.raw.write(wire.value, None, list(wire.headers))
