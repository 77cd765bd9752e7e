"""The rows on `mesh.*` against the rows that the log gives: read by a consumer of their own."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mesh_events.rows import Row
from mesh_events.topics import ROW_TOPICS

if TYPE_CHECKING:
    from projections.image import Image
    from self_service.cli.mesh.context import Mesh


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is missing, foreign or other than the log says."""

    topic: str
    key: str
    kind: str


def published(mesh: "Mesh") -> dict[tuple[str, str], Row]:
    """(topic, key) -> latest row on the row topics."""
    from mesh_events.read import RowReader

    found: dict[tuple[str, str], Row] = {}
    for topic in ROW_TOPICS:
        with RowReader(mesh.governance(mesh.reader), mesh.registry, topic) as reader:
            found |= {(topic, key): row for key, row in reader.latest().items()}
    return found


def differences(
    published_rows: dict[tuple[str, str], Row], folded: dict[tuple[str, str], Row]
) -> list[Difference]:
    """What differs, by topic and key."""
    return [
        Difference(topic, key, _kind(published_rows.get((topic, key)), folded.get((topic, key))))
        for topic, key in sorted(published_rows.keys() | folded.keys())
        if published_rows.get((topic, key)) != folded.get((topic, key))
    ]


def folded(image: "Image") -> dict[tuple[str, str], Row]:
    """(topic, key) -> row as the log gives it."""
    from projections.rows import all_rows

    return {(row.topic, row.key): row for row in all_rows(image)}


def compare(mesh: "Mesh", image: "Image") -> list[Difference]:
    """What differs between the row topics now and the image."""
    return differences(published(mesh), folded(image))


def _kind(published_row: Row | None, folded_row: Row | None) -> str:
    if published_row is None:
        return "missing on the topic"
    if folded_row is None:
        return "not in the log"
    return f"as of offset {published_row.as_of_offset}, the log has {folded_row.as_of_offset}"
