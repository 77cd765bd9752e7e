"""Bad input: bytes that are not what they should be."""

from typing import Any

from mesh_events import avro
from mesh_events.codec import frame
from mesh_events.meta import new_id
from mesh_events.rows import ProductRow
from projections.rows import product_row
from tests.integration.governance.cases import case, headers_of, signed, update
from tests.integration.governance.conftest import Scene
from tests.mesh_kit import fresh, register_schema

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
    return signed(scene, scene.wire(update(scene, scene.owner), scene.owner.key).value[:-3])


@case("garbage")
def a_value_with_bytes_behind_it(scene):
    return signed(scene, scene.wire(update(scene, scene.owner), scene.owner.key).value + b"x")


@case("garbage")
def a_time_that_no_calendar_has(scene):
    # after id, a string of 36 characters, comes the time as a long of 6 bytes
    value = scene.wire(update(scene, scene.owner), scene.owner.key).value
    start = 5 + 1 + 36
    endless = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
    return signed(scene, value[:start] + endless + value[start + 6 :])


@case("garbage")
def text_that_is_not_utf8(scene):
    value = scene.wire(update(scene, scene.owner), scene.owner.key).value
    return signed(scene, value.replace(b"mine now", b"\xff" * 8))


@case("too_large")
def a_value_of_900_kibibytes(scene):
    return raw(scene, b"\x00" * (900 * 1024))


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
    row = product_row(scene.kit.image().catalog[scene.product])
    name = ProductRow.type_name()
    value = frame(scene.kit.registry.schema_id(name), avro.text_of(name), row.model_dump())
    return raw(scene, value)


@case("header_mismatch")
def another_type_in_the_header(scene):
    return scene.write(headers_of(scene, ce_type=b"mesh.AccessGranted.intent"))


@case("header_mismatch")
def another_id_in_the_header(scene):
    return scene.write(headers_of(scene, ce_id=new_id().encode()))


@case("header_missing")
def no_type_in_the_headers(scene):
    return scene.write(headers_of(scene, ce_type=None))


@case("unsigned")
def no_headers(scene):
    wire = scene.wire(update(scene, scene.owner), scene.owner.key)
    return scene.write(wire._replace(headers=[]))


@case("key_mismatch")
def the_key_of_another_thing(scene):
    return signed(scene, key=b"product/other/thing")


@case("key_mismatch")
def no_key(scene):
    return signed(scene, key=None)
