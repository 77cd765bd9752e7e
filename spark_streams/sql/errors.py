"""What can be wrong with a statement, as codes that a person can look up.

| code | what is wrong |
|---|---|
| `sql_syntax` | the text is not SQL |
| `sql_not_supported` | SQL that a stream of records cannot do exactly, or not yet |
| `unknown_column` | no source has a column of that name |
| `ambiguous_column` | several sources have a column of that name |
| `unnamed_column` | a column of the result has no name |
| `duplicate_column` | two columns of the result, or fields of a struct, have the same name |
| `join_not_on_key` | a table is joined on something else than its key |
| `table_without_key` | the records of a topic that is read as a table have no key with a schema |
| `sql_differs` | the text reads or fills other topics than was said |
| `unsupported_schema` | a source's values or keys are JSON Schema or Protobuf |
| `unreadable_column` | a column has a type that Spark does not have |
| `unknown_function` | a function that statements may not call |
| `wrong_type` | Spark refuses an expression, has no value of it, or casts or rounds in silence |
"""

from dataclasses import dataclass

from mesh_events.errors import RefusedError


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column in a statement's text, both from 1."""

    line: int
    column: int

    @classmethod
    def of(cls, text: str, offset: int) -> "Place":
        """Where the character at `offset` stands."""
        before = text[:offset]
        return cls(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class SqlError(RefusedError):
    """A statement cannot be run; the message begins with the place, if it has one."""

    def __init__(self, code: str, reason: str, place: Place | None = None) -> None:
        super().__init__(code, f"{place}: {reason}" if place else reason)
        self.reason, self.place = reason, place

    def __reduce__(self) -> tuple[type["SqlError"], tuple[str, str, Place | None]]:
        """What it is made of again, in another process."""
        return type(self), (self.code, self.reason, self.place)
