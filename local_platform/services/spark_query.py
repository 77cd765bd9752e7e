"""Run one query on a Spark Connect server: `python -m ... REMOTE`, the token on stdin."""

import os
import sys


def main() -> int:
    """Return 0 when Spark counted right, 1 when it did not."""
    os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = sys.stdin.read()
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
    try:
        # one task: by default there is one for each of the server's hundreds of slots
        return 0 if session.range(0, 3, 1, 1).count() == 3 else 1
    finally:
        session.stop()
        session.client.close()


if __name__ == "__main__":
    sys.exit(main())
