"""The picture of a lineage: boxes that do not overlap, arrows from left to right."""

from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

from projections.lineage import downstream, upstream
from self_service.cli.lineage import Scene, _boxes
from self_service.cli.lineage_picture import Picture, svg, write_png
from tests.unit.projections.test_lineage import USERS, joined

RESULT = ("west", "west.greeted")
SVG = "{http://www.w3.org/2000/svg}"


def drawn() -> Picture:
    image, picture = joined().image, Picture()
    _boxes(Scene(image), picture, upstream(image, RESULT), "upstream", 0)
    _boxes(Scene(image), picture, downstream(image, RESULT), "downstream", 0)
    return picture


def test_each_topic_and_job_has_one_box_left_of_what_is_made_of_it() -> None:
    picture = drawn()
    svg(picture)
    assert set(picture.boxes) == {
        "west/west.greeted", "statement west.greeted", "west/west.visits", "west/east.users",
        "link east.users@west", "east/east.users",
    }  # fmt: skip
    for source, target in picture.arrows:
        assert picture.boxes[source].x + picture.boxes[source].width < picture.boxes[target].x
    for one, other in combinations(picture.boxes.values(), 2):
        apart_x = one.x + one.width <= other.x or other.x + other.width <= one.x
        apart_y = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert apart_x or apart_y, (one.name, other.name)


def test_the_svg_is_xml_whatever_names_hold() -> None:
    picture = drawn()
    picture.box("odd", "outside", ["<script>&"], -3)
    found = ET.fromstring(svg(picture))  # noqa: S314 - our own text
    texts = [one.text for one in found.iter(f"{SVG}text")]
    assert "east.users@west" in texts
    assert "<script>&" in texts
    assert len(list(found.iter(f"{SVG}path"))) == 2 * len(picture.arrows)


def test_the_png_shows_the_same(tmp_path: Path) -> None:
    from PIL import Image

    picture, path = drawn(), tmp_path / "lineage.png"
    write_png(picture, path)
    width, height = picture.laid_out()
    with Image.open(path) as image:
        assert image.size == (round(2 * width), round(2 * height))
        colours = {colour for _, colour in image.getcolors(1_000_000)}
    assert {(211, 233, 211), (253, 243, 225)} <= colours


def test_what_was_asked_for_stands_out() -> None:
    picture = drawn()
    assert [one.name for one in picture.boxes.values() if one.kind == "asked"] == [
        "west/west.greeted"
    ]
    assert "/".join(USERS) in picture.boxes
