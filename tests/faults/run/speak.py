"""Emits one intent and prints its offset: a process of its own, to have a clock of its own.

SDM_HOME=... python -m tests.faults.run.speak DOMAIN PRODUCT
"""

import sys

from mesh_events.emit import Emitter
from mesh_events.intents import ProductUpdated


def main() -> None:
    domain, product = sys.argv[1:]
    with Emitter.at_home(domain, actor=f"{domain}-7") as reporter:
        intent = ProductUpdated(meta=reporter.meta(), product=product, tags=["spoken"])
        sys.stdout.write(f"{reporter.emit(intent).offset}\n")


if __name__ == "__main__":
    main()
