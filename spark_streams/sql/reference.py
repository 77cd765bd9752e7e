"""The functions for people, as `docs/reference/sql-functions.md` has them.

`python -m spark_streams.sql.reference > docs/reference/sql-functions.md` writes it.
"""

import sys

from spark_streams.sql.functions import FUNCTIONS, MANY, Function, Growth

HEAD = """# Functions of streaming SQL

Made by `python -m spark_streams.sql.reference`. A statement may call these functions and no others;
each means what it means in Spark SQL. See [how statements are written](../how-to/streaming-sql.md).

"bounded" says that a value may only become as long as the text itself tells.
"""


def page() -> str:
    """The page as Markdown."""
    groups: dict[str, list[str]] = {}
    for name, function in sorted(FUNCTIONS.items()):
        bounded = "bounded" if function.growth is not Growth.NONE else ""
        row = f"| `{name}` | {_arguments(function)} | {bounded} |"
        groups.setdefault(function.group, []).append(row)
    parts = [HEAD]
    for group, rows in sorted(groups.items()):
        parts.append("\n".join([f"## {group}\n", "| function | arguments | |", "|---|---|---|"]))
        parts[-1] += "\n" + "\n".join(rows) + "\n"
    return "\n".join(parts)


def _arguments(function: Function) -> str:
    if function.most == MANY:
        return f"{function.least} or more"
    if function.least == function.most:
        return str(function.least)
    return f"{function.least} to {function.most}"


if __name__ == "__main__":
    sys.stdout.write(page())
