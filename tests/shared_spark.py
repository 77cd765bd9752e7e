"""Where a test's domain finds its Spark server: on one of all such domains, as a server costs much.

    SDM_DOMAIN_SPARK_COMMAND='["python", "-m", "tests.shared_spark"]'

Domains whose names begin with OWN have servers of their own, as they all do outside of tests.
"""

import os
import sys

OWN = "own"
SHARED = "shared"
COMMAND = [sys.executable, "-m", "tests.shared_spark"]

if __name__ == "__main__":
    name = sys.argv[1] if sys.argv[1].startswith(OWN) else SHARED
    os.execv(sys.executable, [sys.executable, "-m", "local_platform", "domain-server", name])  # noqa: S606 - nothing of a shell
