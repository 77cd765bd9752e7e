"""The picture of a lineage: boxes that do not overlap, arrows from left to right."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from mesh_events.connectors import OWN_SECRET, ConnectorAdded
from mesh_events.errors import InvalidValueError
from projections.connectors.config import JDBC_SINK, POSTGRES
from projections.lineage.graph import downstream, upstream
from self_service.cli.app import app
from self_service.cli.lineage.columns import Columns
from self_service.cli.lineage.commands import Scene, _behind, _boxes, _document, _lines
from self_service.cli.lineage.picture import LONGEST_LINE, MOST_ROWS, Picture, svg, write_png
from self_service.cli.mesh.context import Mesh
from tests import sample_history as story
from tests.memory_log import MemoryLog
from tests.unit.projections.lineage.test_lineage import USERS, joined

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
    for source, target, *_ in picture.arrows:
        assert picture.boxes[source].x + picture.boxes[source].width < picture.boxes[target].x
    for one, other in combinations(picture.boxes.values(), 2):
        apart_x = one.x + one.width <= other.x or other.x + other.width <= one.x
        apart_y = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert apart_x or apart_y, (one.name, other.name)


class Schemas:
    """A registry with the columns of some topics."""

    def __init__(self, **topics: str) -> None:
        self._topics = topics

    def versions(self, subject: str) -> dict[int, str]:
        columns = self._topics.get(
            subject.removesuffix("-value").replace(".", "_").replace("-", "_"), ""
        )
        fields = [{"name": one, "type": "int"} for one in columns.split()]
        record = {"type": "record", "name": "R", "fields": fields}
        return {1: json.dumps(record)} if fields else {}


def test_columns_that_get_another_name_are_told_by_their_own_line() -> None:
    log = MemoryLog()
    story.published(log)
    renamed = {
        "transforms": "route,row,t",
        "transforms.row.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.t.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
        "transforms.t.renames": "ssn:note,note:ssn",
    }
    log.say(ConnectorAdded, "east", **story.connector(more=renamed))
    story.settle(log)
    image, place = log.image, ("east", "east.orders")
    registry: Any = Schemas(east_orders="id note ssn")
    tree = upstream(image, place)
    lines = [*_lines(Scene(image, Columns.of(registry, image, [tree])), tree, "upstream")]
    told = [one.split("─ ")[-1] for one in lines if " from " in one]
    table = tree.steps[0][0].reads[0][1]
    assert told == [
        f"id from {table}, unchanged",
        f"note from {table}.ssn",
        f"ssn from {table}.note",
    ]


def test_columns_are_rows_with_arrows_from_table_to_reader() -> None:
    log, picture = MemoryLog(), Picture()
    story.published(log)
    log.say(ConnectorAdded, "east", **story.connector())
    story.settle(log)
    image, place = log.image, ("east", "east.orders")
    registry: Any = Schemas(east_orders="id name")
    tree = upstream(image, place)
    columns = Columns.of(registry, image, [tree])
    _boxes(Scene(image, columns), picture, tree, "upstream", 0)
    svg(picture)
    [table] = [box for box in picture.boxes.values() if box.kind == "outside"]
    [job] = [box for box in picture.boxes.values() if box.kind == "job"]
    topic = picture.boxes["/".join(place)]
    assert table.rows == job.rows == topic.rows == ["id", "name"]
    for name in ("id", "name"):
        assert (table.name, job.name, name, name) in picture.arrows
        assert (job.name, topic.name, name, name) in picture.arrows
    assert topic.y < topic.middle(None) < topic.middle("id") < topic.middle("name")
    assert topic.middle("name") < topic.y + topic.height


def test_columns_that_nobody_knows_leave_the_picture_as_it_is() -> None:
    image = joined().image
    tree = upstream(image, RESULT)
    registry: Any = Schemas()
    plain, told = Picture(), Picture()
    _boxes(Scene(image), plain, tree, "upstream", 0)
    _boxes(Scene(image, Columns.of(registry, image, [tree])), told, tree, "upstream", 0)
    assert plain == told


def test_the_svg_is_xml_whatever_names_hold() -> None:
    picture = drawn()
    picture.box("odd", "outside", ["<script>&", "a\x1b\nb"], -3)
    found = ET.fromstring(svg(picture))  # noqa: S314 - our own text
    texts = [one.text for one in found.iter(f"{SVG}text")]
    assert "east.users@west" in texts
    assert {"<script>&", r"a\x1b\nb"} <= set(texts)
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


def test_a_picture_of_long_names_and_many_columns_stays_small(tmp_path: Path) -> None:
    picture = Picture()
    columns = [f"{'column' * 80}{number}" for number in range(5000)]
    picture.box("from", "topic", ["east.wide"], -1, columns)
    picture.box("to", "asked", ["east.wide.out"], 0, columns)
    for name in columns:
        picture.arrow("from", "to", name, name)
    width, height = picture.laid_out()
    assert width < 1200
    assert height < 2000
    found = [one.text or "" for one in ET.fromstring(svg(picture)).iter(f"{SVG}text")]  # noqa: S314
    assert max(map(len, found)) == LONGEST_LINE
    assert found.count(f"... and {5000 - MOST_ROWS} more") == 2
    for box in picture.boxes.values():
        assert box.y < box.middle(columns[-1]) < box.y + box.height
    write_png(picture, tmp_path / "wide.png")


def test_a_png_that_memory_does_not_hold_is_refused(tmp_path: Path) -> None:
    picture = Picture()
    for number in range(400):
        picture.box(f"t{number}", "topic", ["a topic", *["line"] * 40], number % 4)
    with pytest.raises(InvalidValueError, match=r"too many for a PNG: name a file .* \.svg"):
        write_png(picture, tmp_path / "large.png")
    assert svg(picture)


def test_what_was_asked_for_stands_out() -> None:
    picture = drawn()
    assert [one.name for one in picture.boxes.values() if one.kind == "asked"] == [
        "west/west.greeted"
    ]
    assert "/".join(USERS) in picture.boxes


def test_columns_of_an_earlier_time_are_said_to_be_those_of_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image = joined().image
    monkeypatch.setattr(Mesh, "image", lambda *_: image)
    monkeypatch.setattr(Mesh, "registry", Schemas(east_users="phone"))
    show = ["lineage", "show", "east.users", "--downstream", "--columns"]
    then = CliRunner().invoke(app, [*show, "--at-offset", "50"])
    assert "columns are those of the latest schemas" in then.stderr
    assert "latest schemas" not in CliRunner().invoke(app, show).stderr


def places(tree: dict[str, Any], direction: str) -> list[str]:
    """Topics and tables of a document, as often as they stand there with what is behind them."""
    behind = "from" if direction == "upstream" else "to"
    found = [one for step in tree[direction] for one in step[behind]]
    names = [one.get("topic") or one["name"] for one in found]
    return [*names, *(name for one in found for name in places(one, direction))]


def test_a_document_goes_on_behind_a_table() -> None:
    log = MemoryLog()
    story.published(log)
    at = {"database.hostname": "db.test", "database.dbname": "shop"}
    sink = {
        "connector.class": JDBC_SINK,
        "connection.url": "jdbc:postgresql://db.test:5432/shop",
        "connection.password": OWN_SECRET,
        "primary.key.mode": "record_key",
        "insert.mode": "upsert",
        "topics": "east.users",
    }
    capture = {
        "connector.class": POSTGRES,
        **at,
        "database.password": OWN_SECRET,
        "topic.prefix": "east.back",
        "table.include.list": "public.east_users",
    }
    for name, config in (("east.out", sink), ("east.back", capture)):
        log.say(ConnectorAdded, "east", connector=name, config=config)
        story.settle(log)
    scene = Scene(log.image)
    for direction, walk, begin, ends in (
        ("downstream", downstream, USERS, "east.back.public.east_users"),
        ("upstream", upstream, ("east", "east.back.public.east_users"), "east.users"),
    ):
        tree = {direction: _document(scene, walk(log.image, begin), direction)}
        assert places(tree, direction) == ["shop.public.east_users", ends]


def test_what_stands_again_in_a_document_says_so() -> None:
    branch = replace(upstream(joined().image, RESULT), again=True)
    assert _behind(Scene(joined().image), branch, "upstream")["again"] is True


def test_columns_of_keys_are_told() -> None:
    """A statement's result and a sink's table have what a key says, whatever is selected."""
    image = joined().image
    known = Schemas(
        west_visits="ip user", east_users="id", west_visits_key="user", east_users_key="id"
    )
    tree = upstream(image, RESULT)
    [found] = [
        origins
        for step, origins in Columns.of(known, image, [tree]).steps.items()  # type: ignore[arg-type]
        if step.kind == "statement"
    ]
    assert found["key.user"] == [(("west", "west.visits"), "key.user")]


def test_a_column_called_key_is_none_of_the_key() -> None:
    class Whole(Schemas):
        def versions(self, subject: str) -> dict[int, str]:
            return {1: '"string"'} if subject.endswith("-key") else super().versions(subject)

    image = joined().image
    tree = upstream(image, RESULT)
    known = Whole(west_visits="ip user", east_users="id")
    [found] = [
        origins
        for step, origins in Columns.of(known, image, [tree]).steps.items()  # type: ignore[arg-type]
        if step.kind == "statement"
    ]
    assert found["(key)"] == [(("west", "west.visits"), "(key)")]
    assert "key" not in found
