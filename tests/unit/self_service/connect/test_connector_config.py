"""A connector's config on its way to the log."""

from projections.connectors.settings import JDBC_SINK, KEYLESS, POSTGRES
from self_service.cli.connect.config import with_keyless


def test_a_capture_that_is_added_again_keeps_its_tables_without_a_key() -> None:
    known = {"connector.class": POSTGRES, KEYLESS: "public.a"}
    assert with_keyless({"connector.class": POSTGRES}, known) == known
    own = {"connector.class": POSTGRES, KEYLESS: ""}
    assert with_keyless(own, known) == own
    assert with_keyless({"connector.class": JDBC_SINK}, known) == {"connector.class": JDBC_SINK}
