"""What two statements made of the same records of a stream, side by side: pure."""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

Place = tuple[int, int]
"""(partition, offset) in the stream."""
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one record: a row, or why it could not be read."""

    row: Mapping[str, Any] | None
    reason: str | None = None


@dataclass
class Comparison:
    """How the results of a new text differ from those of the present one.

    same, changed: records that came out of both; changed counts a record once.
    only_before, only_after: records that came out of one of them.
    columns: column -> how many rows differ in it, of columns that both have.
    added, removed: columns that one of them has.
    there, dealt_with: offsets of the stream to be compared, and those that both have dealt with.
    examples: (partition, offset) of the stream with what came out before and after.
    """

    same: int = 0
    changed: int = 0
    only_before: int = 0
    only_after: int = 0
    columns: Counter[str] = field(default_factory=Counter)
    added: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    examples: list[dict[str, Any]] = field(default_factory=list)
    there: int = 0
    dealt_with: int = 0

    @property
    def compared(self) -> int:
        """Records that came out of one or both."""
        return self.same + self.changed + self.only_before + self.only_after

    @property
    def differs(self) -> bool:
        """Whether readers of the destination would see another thing."""
        return bool(
            self.changed or self.only_before or self.only_after or self.added or self.removed
        )

    @property
    def doubt(self) -> str | None:
        """Why that nothing differs tells nothing; None where it does."""
        if self.dealt_with < self.there:
            count = f"{self.dealt_with} of {self.there} offsets of the stream"
            return f"both have processed only {count} (--timeout waits longer)"
        if self.there and not self.compared:
            return "neither text gave a result for a record of the stream"
        return None


def compare(
    before: Mapping[Place, Result],
    after: Mapping[Place, Result],
    columns: tuple[Collection[str], Collection[str]] = ((), ()),
) -> Comparison:
    """Hold two results against each other, record by record of the stream.

    columns: those that each has by its schema, also where no record came out.
    """
    old_columns, new_columns = map(set, columns)
    found = Comparison(added=new_columns - old_columns, removed=old_columns - new_columns)
    for place in sorted(before.keys() | after.keys()):
        old, new = before.get(place), after.get(place)
        if old is None or new is None:
            found.only_after += old is None
            found.only_before += new is None
            _example(found, place, old, new)
            continue
        differing = _differing(found, old, new)
        if differing:
            found.columns.update(differing)
            _example(found, place, old, new)
        found.changed += bool(differing)
        found.same += not differing
    return found


def _differing(found: Comparison, old: Result, new: Result) -> set[str]:
    """Columns of both that differ; a record that only one can read differs as a whole."""
    if old.row is None or new.row is None:
        return set() if old.reason == new.reason else {"(dead letter)"}
    found.added |= new.row.keys() - old.row.keys()
    found.removed |= old.row.keys() - new.row.keys()
    return {name for name in old.row.keys() & new.row.keys() if old.row[name] != new.row[name]}


def _example(found: Comparison, place: Place, old: Result | None, new: Result | None) -> None:
    if len(found.examples) < _EXAMPLES:
        found.examples.append(
            {
                "record": f"{place[0]}@{place[1]}",
                "before": _shown(old),
                "after": _shown(new),
            }
        )


def _shown(result: Result | None) -> Any:
    if result is None:
        return "nothing"
    return f"dead letter: {result.reason}" if result.row is None else dict(result.row)


def _line(shown: Any) -> str:
    """A row as JSON, anything else as it is."""
    if isinstance(shown, str):
        return shown
    return json.dumps(shown, ensure_ascii=False, default=str)


def comparison_text(found: Comparison) -> str:
    """The comparison in a few lines."""
    counts = f"{found.compared} records compared: {found.same} the same, {found.changed} changed"
    only = (
        f"{found.only_before} only from the current text, {found.only_after} only from the new one"
    )
    lines = [f"{counts}, {only}"]
    if found.added:
        lines.append(f"new columns: {', '.join(sorted(found.added))}")
    if found.removed:
        lines.append(f"removed columns: {', '.join(sorted(found.removed))}")
    if found.columns:
        told = [f"{name} in {count}" for name, count in found.columns.most_common()]
        lines.append(f"values that differ: {', '.join(told)}")
    for one in found.examples:
        shown = f"{_line(one['before'])} -> {_line(one['after'])}"
        lines.append(f"  {one['record']}: {shown}")
    return "\n".join(lines)
