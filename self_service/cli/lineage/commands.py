"""`sdm lineage show`: where a product's data comes from, and where it goes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mesh_events.errors import InvalidValueError
from mesh_events.spelling import asked
from projections.image import Image
from projections.lineage import graph
from projections.lineage.graph import Branch
from projections.lineage.steps import EARLIER, Place, Step
from projections.links import Copy
from self_service.cli.framework import completion
from self_service.cli.framework.exits import NotFoundError, UsageError
from self_service.cli.framework.options import Reading, command, noun
from self_service.cli.framework.output import Detail, Format, note, one_line, show
from self_service.cli.lineage.columns import Columns, Origins
from self_service.cli.mesh.context import Mesh

if TYPE_CHECKING:
    from self_service.cli.lineage.picture import Picture

app = noun("Lineage: where data comes from and where it goes.")


@dataclass
class Scene:
    """What the picture is drawn from: the image, and what the registry tells now."""

    image: Image
    columns: Columns = field(default_factory=Columns)


@command(
    app,
    "show",
    "sdm lineage show east.click-users",
    "sdm lineage show east.users --downstream --as-of '1d ago'",
    "sdm lineage show east.click-users --upstream --columns -o json",
    "sdm lineage show east.click-users --columns --picture click-users.svg",
)
def show_lineage(
    reading: Reading,
    name: Annotated[
        str,
        typer.Argument(help="Product, TOPIC or CLUSTER/TOPIC.", autocompletion=completion.products),
    ],
    up: Annotated[bool, typer.Option("--upstream", help="Only its sources.")] = False,
    down: Annotated[
        bool, typer.Option("--downstream", help="Only what is derived from it.")
    ] = False,
    columns: Annotated[
        bool,
        typer.Option(
            "--columns", help="Also show which column comes from which, by the present schemas."
        ),
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", help="Draw the lineage to a file, .svg or .png."),
    ] = None,
) -> None:
    """Show the sources of a product and what is derived from it, from tables to readers.

    Connectors, statements, links and readers are read from the log, so lineage is known as of any
    time. mesh.lineage has the same runs as OpenLineage events.

    Output of a DELETED job or an earlier text (REPLACED) is shown: it stays until its topic is
    deleted, which the log does not record. The same applies to data derived from a copy before it
    was PURGED, and from a topic that was deleted and recreated (DELETED).
    """
    mesh = Mesh()
    image = mesh.image(reading)
    place = place_of(image, name)
    trees = {}
    if up or not down:
        trees["upstream"] = graph.upstream(image, place)
    if down or not up:
        trees["downstream"] = graph.downstream(image, place)
    scene = Scene(image)
    if columns and not reading.is_now:
        note("the columns are those of the latest schemas, at whatever time the steps ran")
    if columns:
        scene.columns = Columns.of(mesh.registry, image, trees.values())
    if picture is not None:
        _draw(scene, trees, picture)
    if reading.output is not Format.TABLE:
        document = {key: _document(scene, tree, key) for key, tree in trees.items()}
        show(Detail({**_about(scene, place), **document}), reading.output)
        return
    typer.echo(one_line(_titled(scene, place)))
    for key, tree in trees.items():
        lines = list(_lines(scene, tree, key)) or ["nothing"]
        typer.echo("\n".join([f"\n{key}", *map(one_line, lines)]))


def place_of(image: Image, name: str) -> Place:
    """The topic that a name means; raises NotFoundError."""
    product = image.catalog.get(name)
    if product is not None:
        return product.cluster, product.topic
    cluster, slash, topic = name.partition("/")
    if slash and cluster in image.identity.clusters:
        return cluster, topic
    known = {one for step in graph.steps(image) for one in (*step.reads, *step.writes)}
    found = sorted(one for one in known if one[1] == name)
    if len(found) == 1:
        return found[0]
    if found:
        every = " or ".join(f"{cluster}/{topic}" for cluster, topic in found)
        raise NotFoundError(f"{name} is on several clusters: give {every}")
    names = [*image.catalog, *(one[1] for one in known)]
    raise NotFoundError(
        f"{name} is not known: {asked(name, names)}name a product "
        "(`sdm catalog list`), or a topic or table that a link, a statement or a connector reads "
        "or fills"
    )


def _draw(scene: Scene, trees: dict[str, Branch], path: Path) -> None:
    """Draw the trees into a file; raises UsageError for another kind of file."""
    from self_service.cli.lineage import picture as lineage_picture

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
    note(f"wrote {path}")


def _boxes(scene: Scene, drawn: "Picture", tree: Branch, direction: str, column: int) -> str:
    """Put a topic and all that is behind it; the name of its box."""
    about, away = _about(scene, tree.place), -1 if direction == "upstream" else 1
    outside = graph.is_outside(tree.place)
    lines = [about["topic"], about["cluster"] if outside else f"cluster {about['cluster']}"]
    lines += [f"product {about['product']}"] if about["product"] else []
    lines += [f"read by {one}" for one in about["readers"]]
    lines += ["more not shown: see its lineage"] if tree.more else []
    kind = "asked" if column == 0 else "outside" if outside else "topic"
    here = drawn.box("/".join(tree.place), kind, lines, column, scene.columns.at(tree.place))
    for step, branches in tree.steps:
        origins = _origins(scene, step, tree.place, direction) or {}
        # with columns, a connector has a box for each of its tables
        fills = f" {'/'.join(step.fills)}" if origins else ""
        job = drawn.box(
            f"{step.kind} {step.name}{fills}{_earlier(step)}",
            "job",
            [step.name, f"{step.kind}, {_state(step)}"],
            column + away,
            list(origins),
        )
        for one in branches:
            _boxes(scene, drawn, one, direction, column + 2 * away)
        behind = [one.place for one in branches]
        read, written = (behind, [tree.place]) if away < 0 else ([tree.place], behind)
        for place in read:
            drawn.arrow("/".join(place), job)
        for place in written:
            drawn.arrow(job, "/".join(place))
        for out, inputs in origins.items():
            drawn.arrow(job, "/".join(step.fills), out, out)
            for place, name in inputs:
                if place in read:
                    drawn.arrow("/".join(place), job, name, out)
    return here


def _about(scene: Scene, place: Place) -> dict[str, Any]:
    return {
        "cluster": place[0],
        "topic": place[1],
        "product": graph.product_of(scene.image, place),
        "readers": graph.readers(scene.image, place),
    }


def _document(scene: Scene, tree: Branch, direction: str) -> list[dict[str, Any]]:
    """The steps behind a topic, each with the topics behind it."""
    behind = "from" if direction == "upstream" else "to"
    found: list[dict[str, Any]] = [
        {
            "job": step.kind,
            "name": step.name,
            "state": step.state,
            **({"copy": step.copy} if step.copy else {}),
            **_told(_origins(scene, step, tree.place, direction)),
            behind: [
                {**_behind(scene, one, direction), **_role(step, one.place)} for one in branches
            ],
        }
        for step, branches in tree.steps
    ]
    return found


def _origins(scene: Scene, step: Step, place: Place, direction: str) -> Origins | None:
    """What is known of a step's columns; None if nobody asked, or of its dead letters."""
    is_dead = direction == "upstream" and place != step.fills
    return None if is_dead else scene.columns.steps.get(step)


def _role(step: Step, place: Place) -> dict[str, Any]:
    return {"dead_letters": True} if place in step.dead_letters else {}


def _told(origins: Origins | None) -> dict[str, Any]:
    """Column of what is filled -> `topic.column` of what it is made of, if that was asked."""
    if origins is None:
        return {}
    return {"columns": {out: [_column(*one) for one in found] for out, found in origins.items()}}


def _state(step: Step) -> str:
    """The state, and what became of a copy that is no longer kept up to date."""
    ended = step.copy in (Copy.PURGED, Copy.RETAINED)
    return f"{step.state}, copy {step.copy}" if ended else step.state


def _earlier(step: Step) -> str:
    """Distinguishes the box of an earlier text from that of the present one."""
    return f" {step.state}" if step.state in EARLIER else ""


def _column(place: Place, name: str) -> str:
    return f"{place[1]}.{name}"


def _behind(scene: Scene, branch: Branch, direction: str) -> dict[str, Any]:
    """A topic with what is behind it; a table by its OpenLineage name.

    What is behind one that stands `again` is where it stood before; behind one with `more` is more.
    """
    if graph.is_outside(branch.place):
        namespace, name = branch.place
        about: dict[str, Any] = {"namespace": namespace, "name": name}
    else:
        about = _about(scene, branch.place)
    marks = {"again": branch.again, "more": branch.more}
    told = {name: True for name, is_so in marks.items() if is_so}
    return {**about, **told, direction: _document(scene, branch, direction)}


def _lines(scene: Scene, tree: Branch, direction: str) -> Iterator[str]:
    """The tree behind a topic, a line each."""
    nodes: list[tuple[str, Iterable[str]]] = [
        (
            f"{step.kind} {step.name} ({_state(step)})",
            _inside(scene, step, tree.place, branches, direction),
        )
        for step, branches in tree.steps
    ]
    for text, inside in _marked(nodes):
        yield text
        yield from inside


def _inside(
    scene: Scene, step: Step, place: Place, branches: tuple[Branch, ...], direction: str
) -> Iterator[str]:
    nodes: list[tuple[str, Iterable[str]]] = []
    origins = _origins(scene, step, place, direction) or {}
    # what is called otherwise than where it comes from is told by itself
    same = [] if step.kind == "statement" else [out for out in origins if _is_same(out, origins)]
    if same:
        nodes.append((f"{', '.join(same)} from {step.reads[0][1]}, unchanged", []))
    for out, found in origins.items():
        if out not in same:
            made = ", ".join(_column(*one) for one in found) or "no source column"
            nodes.append((f"{out} from {made}", []))
    for number, one in enumerate(branches):
        role = ""
        if direction == "upstream" and step.kind == "statement":
            role = ", stream" if number == 0 else ", table"
        elif one.place in step.dead_letters:
            role = ", dead letters"
        again = ", as above" if one.again else ""
        more = ", and more not shown: see its lineage" if one.more else ""
        title = f"{_titled(scene, one.place)}{role}{again}{more}"
        nodes.append((title, _lines(scene, one, direction)))
    for text, inside in _marked(nodes):
        yield text
        yield from inside


def _is_same(column: str, origins: Origins) -> bool:
    """Whether a column is made of the one of its name alone."""
    return [name for _, name in origins[column]] == [column]


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
