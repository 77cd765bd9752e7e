"""`sdm lineage show`: where a product's data comes from, and where it goes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mesh_events.errors import InvalidValueError, MeshError
from projections import lineage
from projections.image import Image
from projections.lineage import Branch, Step
from projections.sources import Place
from self_service.cli import captured, completion
from self_service.cli.context import Mesh
from self_service.cli.exits import NotFoundError, UsageError
from self_service.cli.options import Reading, command, noun
from self_service.cli.output import Detail, Format, note, printable, show

if TYPE_CHECKING:
    from self_service.cli.lineage_picture import Picture

app = noun("Lineage: where data comes from, and where it goes.")


@dataclass
class Scene:
    """What the picture is drawn from: the image, and what is not on the log, as it is now.

    tables: topic -> the tables in databases that connectors read into it.
    columns: statement -> column of its result -> columns that it is made of.
    """

    image: Image
    tables: dict[str, list[captured.Table]] = field(default_factory=dict)
    columns: dict[str, dict[str, list[str]]] = field(default_factory=dict)


@command(
    app,
    "show",
    "sdm lineage show east.click-users",
    "sdm lineage show east.users --downstream --as-of '1d ago'",
    "sdm lineage show east.click-users --upstream --columns -o json",
    "sdm lineage show east.click-users --picture click-users.svg",
)
def show_lineage(
    reading: Reading,
    name: Annotated[
        str,
        typer.Argument(
            help="Product, or TOPIC or CLUSTER/TOPIC.", autocompletion=completion.products
        ),
    ],
    up: Annotated[bool, typer.Option("--upstream", help="Only what it is made of.")] = False,
    down: Annotated[bool, typer.Option("--downstream", help="Only what is made of it.")] = False,
    columns: Annotated[
        bool, typer.Option("--columns", help="Also which column comes from which.")
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", help="Draw it into a file, .svg or .png."),
    ] = None,
) -> None:
    """Show what a product is made of, and what is made of it: links, statements, readers.

    Read off the log, and so as of any moment; the tables in databases that connectors read are
    told as they are now. The same events stand on mesh.lineage, as OpenLineage.
    """
    mesh = Mesh()
    image = mesh.image(reading)
    place = place_of(image, name)
    trees = {}
    if up or not down:
        trees["upstream"] = lineage.upstream(image, place)
    if down or not up:
        trees["downstream"] = lineage.downstream(image, place)
    scene = Scene(image)
    if reading.is_now:
        scene.tables = captured.tables(mesh)
    if columns:
        every = [one for tree in trees.values() for one in _statements(tree)]
        scene.columns = {name: _columns(mesh, image, name) for name in every}
    if picture is not None:
        _draw(scene, trees, picture)
    if reading.output is not Format.TABLE:
        document = {key: _document(scene, tree, key) for key, tree in trees.items()}
        show(Detail({**_about(scene, place), **document}), reading.output)
        return
    typer.echo(printable(_titled(scene, place)))
    for key, tree in trees.items():
        lines = list(_lines(scene, tree, key))
        typer.echo(printable("\n".join([f"\n{key}", *(lines or ["nothing"])])))


def place_of(image: Image, name: str) -> Place:
    """The topic that a name means; raises NotFoundError."""
    product = image.catalog.get(name)
    if product is not None:
        return product.cluster, product.topic
    cluster, slash, topic = name.partition("/")
    if slash and cluster in image.identity.clusters:
        return cluster, topic
    known = {one for step in lineage.steps(image) for one in (*step.reads, step.fills)}
    found = sorted(one for one in known if one[1] == name)
    if len(found) == 1:
        return found[0]
    if found:
        every = " or ".join(f"{cluster}/{topic}" for cluster, topic in found)
        raise NotFoundError(f"{name} is on several clusters: write {every}")
    raise NotFoundError(
        f"nothing is known of {name}: name a product (`sdm catalog list`), or a topic that a link "
        "or a statement reads or fills"
    )


def _draw(scene: Scene, trees: dict[str, Branch], path: Path) -> None:
    """Draw the trees into a file; raises UsageError for another kind of file."""
    from self_service.cli import lineage_picture

    drawn = lineage_picture.Picture()
    for direction, tree in trees.items():
        _boxes(scene, drawn, tree, direction, 0)
    try:
        match path.suffix.lower():
            case ".svg":
                path.write_text(lineage_picture.svg(drawn), "utf-8")
            case ".png":
                lineage_picture.write_png(drawn, path)
            case _:
                raise UsageError(f"--picture {path}: name a file that ends in .svg or .png")
    except OSError as error:
        raise InvalidValueError(f"{path}: {error.strerror}") from error
    note(f"drawn into {path}")


def _boxes(scene: Scene, drawn: "Picture", tree: Branch, direction: str, column: int) -> str:
    """Put a topic and all that is behind it; the name of its box."""
    about, away = _about(scene, tree.place), -1 if direction == "upstream" else 1
    lines = [about["topic"], f"cluster {about['cluster']}"]
    lines += [f"product {about['product']}"] if about["product"] else []
    lines += [f"read by {one}" for one in about["readers"]]
    kind = "asked" if column == 0 else "topic"
    here = drawn.box("/".join(tree.place), kind, lines, column)

    def arrow(one: str, other: str) -> None:
        drawn.arrow(*((other, one) if away < 0 else (one, other)))

    for step, branches in tree.steps:
        job = drawn.box(
            f"{step.kind} {step.name}",
            "job",
            [step.name, f"{step.kind}, {step.state}"],
            column + away,
        )
        arrow(here, job)
        for one in branches:
            arrow(job, _boxes(scene, drawn, one, direction, column + 2 * away))
    if direction == "upstream":
        for table in scene.tables.get(tree.place[1], []):
            lines = [table.connector, f"connector, {table.state}"]
            job = drawn.box(f"connector {table.connector}", "job", lines, column - 1)
            arrow(here, job)
            lines = [table.name, table.namespace]
            arrow(job, drawn.box(f"{table.namespace}/{table.name}", "outside", lines, column - 2))
    return here


def _statements(tree: Branch) -> list[str]:
    found = {
        step.name for one in lineage.walk(tree) for step, _ in one.steps if step.kind == "statement"
    }
    return sorted(found)


def _columns(mesh: Mesh, image: Image, name: str) -> dict[str, list[str]]:
    """Column of a statement's result -> topic.column of what it is made of; {} if unknown."""
    from spark_streams.sql.parse import parse
    from spark_streams.sql.plan import planned

    statement = image.statements[name]
    try:
        plan = planned(parse(statement.sql), statement.names, mesh.registry)
    except MeshError as error:
        note(f"the columns of {name} cannot be told: {error}")
        return {}
    names = {alias: table.name for alias, table in plan.tables.items()}
    names[plan.stream.alias] = statement.stream
    return {
        out.name: [f"{names[one.alias]}.{one.column}" for one in out.inputs]
        for out in plan.query.out
    }


def _about(scene: Scene, place: Place) -> dict[str, Any]:
    return {
        "cluster": place[0],
        "topic": place[1],
        "product": lineage.product_of(scene.image, place),
        "readers": lineage.readers(scene.image, place),
    }


def _document(scene: Scene, tree: Branch, direction: str) -> list[dict[str, Any]]:
    """The steps behind a topic, each with the topics behind it."""
    behind = "from" if direction == "upstream" else "to"
    found: list[dict[str, Any]] = [
        {
            "job": step.kind,
            "name": step.name,
            "state": step.state,
            **({"columns": scene.columns[step.name]} if step.name in scene.columns else {}),
            behind: [
                {**_about(scene, one.place), direction: _document(scene, one, direction)}
                for one in branches
            ],
        }
        for step, branches in tree.steps
    ]
    if direction == "upstream":
        found += [one.document() for one in scene.tables.get(tree.place[1], [])]
    return found


def _lines(scene: Scene, tree: Branch, direction: str) -> Iterator[str]:
    """The tree behind a topic, a line each."""
    nodes: list[tuple[str, Iterable[str]]] = [
        (
            f"{step.kind} {step.name} ({step.state})",
            _inside(scene, step, branches, direction),
        )
        for step, branches in tree.steps
    ]
    if direction == "upstream":
        nodes += [
            (f"connector {one.connector} ({one.state})", [f"└─ {one.name}"])
            for one in scene.tables.get(tree.place[1], [])
        ]
    for text, inside in _marked(nodes):
        yield text
        yield from inside


def _inside(
    scene: Scene, step: Step, branches: tuple[Branch, ...], direction: str
) -> Iterator[str]:
    nodes: list[tuple[str, Iterable[str]]] = []
    for column, origins in scene.columns.get(step.name, {}).items():
        nodes.append((f"{column} from {', '.join(origins) or 'nothing that is read'}", []))
    for number, one in enumerate(branches):
        role = ""
        if direction == "upstream" and step.kind == "statement":
            role = ", stream" if number == 0 else ", table"
        again = ", as above" if one.again else ""
        title = f"{_titled(scene, one.place)}{role}{again}"
        nodes.append((title, _lines(scene, one, direction)))
    for text, inside in _marked(nodes):
        yield text
        yield from inside


def _marked(nodes: list[tuple[str, Iterable[str]]]) -> Iterator[tuple[str, Iterator[str]]]:
    """Each node's line and those inside it, with the branches of a tree in front."""
    for number, (text, inside) in enumerate(nodes):
        last = number == len(nodes) - 1
        yield f"{'└─' if last else '├─'} {text}", _indented(inside, "   " if last else "│  ")


def _indented(lines: Iterable[str], space: str) -> Iterator[str]:
    return (space + line for line in lines)


def _titled(scene: Scene, place: Place) -> str:
    about = _about(scene, place)
    product = f" (product {about['product']})" if about["product"] else ""
    read = f", read by {', '.join(about['readers'])}" if about["readers"] else ""
    return f"{place[1]} @ {place[0]}{product}{read}"
