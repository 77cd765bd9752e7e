"""No module needs itself, over however many others, before it is loaded: read from source."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = (
    *("mesh_events", "projections", "snapshots", "spark_streams", "processors"),
    *("self_service", "local_platform", "benchmarks"),
)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {
    name_of(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
}


def at_import(body: list[ast.stmt]) -> Iterator[ast.ImportFrom | ast.Import]:
    """What runs when a module is loaded: not what stands in its functions."""
    for node in body:
        match node:
            case ast.ImportFrom() | ast.Import():
                yield node
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.If() | ast.Try():
                yield from at_import([*node.body, *node.orelse])


def needed(name: str, path: Path) -> set[str]:
    """Modules of ours that are loaded before this one is: also packages that hold them."""
    found: set[str] = set()
    for node in at_import(ast.parse(path.read_text("utf-8")).body):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        else:
            inner = {f"{node.module}.{one.name}" for one in node.names}
            found |= {one if one in MODULES else str(node.module) for one in inner}
    packages = {one.rsplit(".", depth)[0] for one in found for depth in range(1, 6)}
    # those that hold this module are being loaded already
    return {
        one for one in found | packages if one in MODULES and not f"{name}.".startswith(f"{one}.")
    }


def test_no_module_is_needed_to_load_itself() -> None:
    assert len(MODULES) > 500
    graph = {name: needed(name, path) for name, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" needs ".join(error.args[1][::-1]))
