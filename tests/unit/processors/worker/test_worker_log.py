"""What the process of a worker writes besides its log."""

import json
import subprocess
import sys

STARTING = """
import asyncio, logging
import faust, structlog
from processors import logs
from processors.worker import app

async def start():
    worker = app.worker(faust.App("governor", store="memory://"))
    await worker.default_on_first_start()
    logging.getLogger("a.library").warning('{"event": "warned"}')
    structlog.get_logger().info("started")
    await worker.on_startup_finished()

logs.configure("info")
asyncio.run(start())
"""


def test_a_worker_writes_no_escape_sequences_before_or_behind_its_lines_of_json() -> None:
    """Those of Faust's spinner made the first line one that is no JSON."""
    done = subprocess.run(
        (sys.executable, "-c", STARTING),
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    lines = done.stdout.splitlines()
    assert "started" in [json.loads(one)["event"] for one in lines if one.startswith("{")]
    assert "\x1b" not in done.stdout
    assert "\b" not in done.stdout
