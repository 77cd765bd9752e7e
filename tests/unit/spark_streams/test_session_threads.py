"""The client library is loaded whole before any thread uses it."""

import subprocess
import sys

SCRIPT = """
import threading, time
from spark_streams.errors import EngineError
from spark_streams.session import ConnectSession

faults = []

def ask(after):
    time.sleep(after)
    try:
        ConnectSession("sc://127.0.0.1:1", None, str(after)).call("asking", lambda session: session)
    except EngineError:
        pass
    except BaseException as error:
        faults.append(repr(error))

# one begins where the other one is in the middle
threads = [threading.Thread(target=ask, args=(number * 0.02,)) for number in range(100)]
[one.start() for one in threads]
[one.join() for one in threads]
print(faults)
"""


def test_threads_that_ask_at_once_load_the_client_library() -> None:
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=120
    )
    assert told.stdout.strip().splitlines()[-1] == "[]", told.stdout
