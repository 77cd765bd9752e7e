from pathlib import Path

import pytest

from mesh_events.errors import InvalidValueError
from mesh_events.intents import Quality
from projections.catalog import Product
from self_service.cli.product.catalog import matches
from self_service.cli.product.promises import Promise, quality_of, read_promise, tier_of
from tests import sample_history as story
from tests.memory_log import MemoryLog


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raw", Quality.RAW),
        ("STANDARD", Quality.STANDARD),
        ("Curated", Quality.STANDARD),
        (" enriched ", Quality.ENRICHED),
        ("Authoritative", Quality.ENRICHED),
    ],
)
def test_quality_is_known_under_both_names(text: str, expected: Quality) -> None:
    assert quality_of(text) is expected


@pytest.mark.parametrize("text", [1, "1", "tier1", "Tier 1", "TIER-1"])
def test_a_tier_is_read_as_people_write_it(text: str | int) -> None:
    assert tier_of(text) == 1


@pytest.mark.parametrize("text", ["0", "4", "gold", "1.5", "-1", ""])
def test_what_is_no_tier_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match="1 \\(best\\), 2 or 3"):
        tier_of(text)


def test_options_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "product.yaml"
    path.write_text("product: east.users\nsla: 2\ntags: [people]\nversion: 1.1\n")
    found = Promise(sla="1").over(read_promise(path))
    assert found == Promise(product="east.users", sla="1", tags=["people"], version="1.1")


def test_the_texts_of_a_file_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "product.yaml"
    path.write_text("description: 2026-01-31\nversion: 1.10\ntags: [no, 0123, 'true']\nowner:\n")
    found = Promise(description="2026-01-31", version="1.10", tags=["no", "0123", "true"])
    assert read_promise(path) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sla: 1\nsla: 2", "has a duplicate name (line 2, column 1)"),
        ("colour: red\nproduct: x", "colour"),
        ("product: [a", "not YAML"),
        ("- a\n- b", "a product has product, topic"),
        ("", "a product has product, topic"),
    ],
)
def test_a_wrong_file_is_told_with_its_name_and_what_a_product_has(
    text: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "product.yaml"
    path.write_text(text)
    with pytest.raises(InvalidValueError) as told:
        read_promise(path)
    assert said in str(told.value)
    assert str(path) in str(told.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="No such file"):
        read_promise(tmp_path / "none.yaml")


@pytest.fixture
def product() -> Product:
    log = MemoryLog()
    story.published(log)
    return log.image.catalog[story.PRODUCT]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", True),
        ("USERS", True),
        ("account everyone", True),
        ("people team-east", True),
        ("users orders", False),
    ],
)
def test_a_search_finds_products_with_all_its_words(
    text: str, *, found: bool, product: Product
) -> None:
    assert matches(product, text) is found


SHADOW = "root:$6$salt$hashhashhash:19000:0:99999:7:::\nsecond: [unclosed"


def told_of(text: str | bytes, path: Path) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InvalidValueError) as told:
        read_promise(path)
    return str(told.value).replace(str(path), "FILE")


@pytest.mark.parametrize(
    "text",
    [
        SHADOW,
        "root:$6$salt$hashhashhash:19000:0:99999:7:::\n",
        "2020-99-99: hashhashhash",
        "one: two: hashhashhash",
        "a: b\n\tc: hashhashhash",
        "- hashhashhash",
        "'hashhashhash",
        b"\xff\xfehashhashhash",
        "owner: {hashhashhash: 1}",
        "x" * 40 + "hashhashhash: 1",
    ],
)
def test_what_stands_in_a_foreign_file_is_not_told(text: str | bytes, tmp_path: Path) -> None:
    assert "hashhash" not in told_of(text, tmp_path / "foreign")


def test_at_most_three_foreign_fields_are_named_and_shortened(tmp_path: Path) -> None:
    fields = [f"{name}{'y' * 60}" for name in "abcde"]
    told = told_of("".join(f"{field}: 1\n" for field in fields), tmp_path / "foreign")
    named = [f"{field[:37]}...:" for field in fields]
    assert [name in told for name in named] == [True, True, True, False, False]
    assert "y" * 40 not in told
    assert "and 2 more" in told
