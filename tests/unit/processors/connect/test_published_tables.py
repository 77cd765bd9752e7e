"""What a publication has to have."""

import pytest

from mesh_events.errors import RefusedError
from processors.connect.published_tables import Published, require_published


def require(left_out: list[str], *skipped: str) -> None:
    found = Published("public.a", "public.a", False, False, False, left_out, False, None)
    require_published([found], "p", [], [], is_outbox=False, is_kept=False, skipped=skipped)


def test_a_publication_may_lack_what_its_connector_skips_and_nothing_else() -> None:
    require(["TRUNCATE"], "t")
    require(["DELETE", "TRUNCATE"], "t", "d")
    for skipped in ((), ("t",)):
        with pytest.raises(RefusedError, match="has no DELETE"):
            require(["DELETE"], *skipped)
