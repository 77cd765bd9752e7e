"""What stands on the row topics is what the log says, to the last field, whoever wrote there."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mesh_events import avro, topics
from mesh_events.codec import frame
from mesh_events.intents import ProductUpdated
from mesh_events.read import RowReader
from mesh_events.rows import ProductRow
from projections.checksum import checksum, rows_checksum
from projections.rows import all_rows, product_row
from tests.mesh_kit import Domain, Mesh, RawProducer, eventually, fresh
from tests.plain_reader import Plain

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def owner(kit: Mesh) -> Domain:
    return kit.register_domain("owner")


@pytest.fixture
def product(owner: Domain) -> str:
    return owner.product()[0]


@pytest.fixture(scope="module")
def plain(kit: Mesh) -> Plain:
    return Plain(kit.login("mesh.operator").config(), kit.endpoints.registry_url)


@pytest.fixture(scope="module")
def intruder(kit: Mesh) -> RawProducer:
    """The super user, whom no right keeps off a row topic."""
    return RawProducer(kit.admin_login())


def replayed(kit: Mesh, seed: str = "0", *end: str) -> dict[str, Any]:
    """A replay by a new process, up to its end or an offset."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.replayed", *end],
        cwd=REPOSITORY,
        env={**os.environ, "SDM_HOME": str(kit.home), "PYTHONHASHSEED": seed},
        capture_output=True,
        check=True,
        timeout=120,
    )
    return dict(json.loads(done.stdout))


def test_rows_equal_a_replay_in_a_new_process(
    kit: Mesh, plain: Plain, owner: Domain, product: str
) -> None:
    buyer = kit.register_domain("buyer")
    request = buyer.request(product, buyer.application().name)
    owner.grant(product, request)
    owner.revoke(product, request)

    eventually(lambda: plain.rows() == replayed(kit)["rows"], "rows as replayed")

    assert plain.rows()[topics.ACCESS][request]["state"] == "REVOKED"


def test_the_checksum_is_the_same_in_every_process(kit: Mesh, product: str) -> None:
    image = kit.image()
    # the log may grow meanwhile: its controllers look for drift by themselves
    found = [replayed(kit, seed, str(image.offset)) for seed in ("1", "2")]

    assert found[0]["offset"] == found[1]["offset"] == image.offset
    assert {each["checksum"] for each in found} == {checksum(image)}
    assert {each["rows_checksum"] for each in found} == {rows_checksum(all_rows(image))}


@pytest.mark.parametrize("kind", ["garbage", "tombstone", "older", "foreign"])
def test_what_somebody_else_wrote_over_a_row_is_written_over(
    kit: Mesh, plain: Plain, intruder: RawProducer, owner: Domain, product: str, kind: str
) -> None:
    older = encoded(kit, product_row(kit.image().catalog[product]))
    kit.accepted(owner.say(ProductUpdated, product=product, description="newer"))
    right = product_row(kit.image().catalog[product])
    foreign = encoded(kit, right.model_copy(update={"owner": "me"}))
    values = {"garbage": b"\xff", "tombstone": None, "older": older, "foreign": foreign}

    written = intruder.write(values[kind], product.encode(), topic=topics.CATALOG)

    eventually(lambda: rewritten(plain, product, written), "the row is written again")
    assert plain.rows()[topics.CATALOG][product]["description"] == "newer"
    assert plain.rows()[topics.CATALOG][product]["owner"] == "team-7"


def test_a_row_of_nothing_is_taken_away(
    kit: Mesh, plain: Plain, intruder: RawProducer, product: str
) -> None:
    name = f"nobody.{fresh('ghost')}"
    row = product_row(kit.image().catalog[product]).model_copy(update={"product": name})

    written = intruder.write(encoded(kit, row), name.encode(), topic=topics.CATALOG)

    eventually(lambda: rewritten(plain, name, written), "the ghost is taken away")
    assert name not in plain.rows()[topics.CATALOG]


def test_a_reader_resumes_behind_the_row_that_it_had(
    kit: Mesh, owner: Domain, product: str
) -> None:
    with RowReader(kit.login(owner.name), kit.registry, topics.CATALOG) as reader:
        seen = [offset for offset, _ in reader.to_end()]
    kit.accepted(owner.say(ProductUpdated, product=product, description="resumed"))

    with RowReader(kit.login(owner.name), kit.registry, topics.CATALOG, seen[-1] + 1) as reader:
        found = next(
            (offset, row)
            for offset, row in reader.follow(20)
            if isinstance(row, ProductRow) and row.product == product
        )

    assert found[0] > seen[-1]
    assert found[1].description == "resumed"


def encoded(kit: Mesh, row: ProductRow) -> bytes:
    name = row.type_name()
    return frame(kit.registry.schema_id(name), avro.text_of(name), row.model_dump())


def rewritten(plain: Plain, key: str, after: int) -> bool:
    """Whether the row of a key was written again behind an offset."""
    later = plain.messages(topics.CATALOG, after + 1)
    return any(message.key() == key.encode() for message in later)
