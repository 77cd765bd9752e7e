"""Bad input: who may not speak, for whom, and about what."""

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
)
from mesh_events.meta import Event, new_id
from mesh_events.signing import SigningKey
from tests.integration.governance.cases import (
    as_mesh,
    case,
    chained,
    headers_of,
    of_stranger,
    update,
)
from tests.integration.governance.conftest import Scene
from tests.mesh_kit import fresh

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
def signed_for_another_mesh(scene):
    other = SigningKey.generate().public
    return scene.write(scene.wire(update(scene, scene.owner), scene.owner.key, other))


@case("weak_key")
def under_a_key_with_which_anybody_can_sign(scene):
    return scene.write(headers_of(scene, mesh_key=b"A" * 43))


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
        proof="",
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
    made, name = SigningKey.generate(), scene.owner.name
    proof = made.prove(scene.kit.profile.root_key, name)
    fields = {"domain": name, "public_key": made.public, "proof": proof}
    return of_stranger(scene, scene.stranger.make(KeyRegistered, **fields))


@case("invalid_proof")
def a_key_that_somebody_else_holds(scene):
    name, public = scene.stranger.name, SigningKey.generate().public
    return of_stranger(
        scene, scene.stranger.make(KeyRegistered, domain=name, public_key=public, proof="A" * 86)
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
    fields = {"offset": 0, **chained(scene), "code": "garbage", "reason": "so"}
    return of_stranger(scene, as_mesh(scene, IntentQuarantined, **fields))


@case("forged")
def a_decision_under_the_controllers_key(scene):
    return scene.write(scene.wire(forged_decision(scene), scene.kit.key("controller")))


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
    keys = dict.fromkeys(("operator_key", "governor_key", "controller_key"), public)
    event = as_mesh(scene, MeshFounded, mesh="mine", governance_cluster="east", **keys)
    return scene.write(scene.wire(event, scene.kit.key("root")))


def forged_decision(scene: Scene) -> Event:
    fields = {"offset": 0, **chained(scene), "intent": new_id()}
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
