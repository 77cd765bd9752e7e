"""Replays the log of a mesh and prints its rows and their checksum as JSON.

    SDM_HOME=... python -m tests.replayed [OFFSET]

A process of its own, to be compared with what stands on the row topics.
"""

import json
import sys

from mesh_events.read import LogReader
from processors.settings import OPERATOR, WorkerSettings
from projections.checksum import checksum, rows_checksum
from projections.replay import replay
from projections.rows import all_rows
from tests.memory_log import open_offsets
from tests.plain_reader import ROW_TOPICS, milliseconds


def main() -> None:
    with LogReader(WorkerSettings.load().governance(OPERATOR)) as reader:
        end = int(sys.argv[1]) if len(sys.argv) > 1 else None
        image = replay(reader.to_end(), at_offset=end)
    rows: dict[str, dict[str, object]] = {topic: {} for topic in ROW_TOPICS}
    for row in all_rows(image):
        rows[row.topic][row.key] = {"type": row.type_name(), **row.model_dump()}
    found = {
        "offset": image.offset,
        "undecided": open_offsets(image),
        "checksum": checksum(image),
        "rows_checksum": rows_checksum(all_rows(image)),
        "rows": rows,
    }
    json.dump(found, sys.stdout, default=milliseconds)


if __name__ == "__main__":
    main()
