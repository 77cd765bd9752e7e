"""What MirrorMaker's engine asks of Kafka Connect."""

from pathlib import Path

from processors.clusters.principals import LINKS
from processors.connect.secrets import ConnectSecrets
from processors.mirror.engine import MirrorEngine
from tests.connectors.memory import MemoryConnect

LINK, OTHER = "east.users@west", "east.orders@west"


def writer_of(link: str) -> str:
    return f"{LINKS}{link}.0123abcd"


def test_a_copy_that_a_worker_that_starts_does_not_list_is_dropped(tmp_path: Path) -> None:
    api, secrets = MemoryConnect(), ConnectSecrets(tmp_path)
    for link in (LINK, OTHER):
        secrets.store_login("west", writer_of(link), "s3cret")
        api.put(writer_of(link), {"connector.class": "any"})
    api.reads = True
    MirrorEngine(api, secrets).stop(LINK)
    assert list(api.found) == [writer_of(OTHER)]
    assert secrets.principals() == {writer_of(OTHER)}
