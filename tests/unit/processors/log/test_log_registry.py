"""A worker encodes and decodes what the log has introduced, whether or not a registry answers."""

import pytest

from mesh_events import avro
from mesh_events.errors import InfrastructureError
from processors.log.registry import LogRegistry

NOBODY = "http://127.0.0.1:9/apis"
"""The discard port: nothing listens there."""


def registry(introduced: dict[int, str]) -> LogRegistry:
    return LogRegistry(NOBODY, "writer", "secret", lambda: introduced)


def test_what_the_log_has_introduced_needs_no_registry() -> None:
    introduced = {
        7: avro.text_of("IntentRejected"),
        8: avro.text_of("IntentAccepted"),
        9: avro.text_of("ProductRow"),
    }
    found = registry(introduced)
    assert found.schema_id("IntentAccepted") == 8
    assert found.schema_id("ProductRow") == 9
    assert found.schema_text(7) == introduced[7]


def test_what_was_introduced_meanwhile_is_known() -> None:
    introduced: dict[int, str] = {}
    found = registry(introduced)
    introduced[3] = avro.text_of("AclApplied")
    assert found.schema_id("AclApplied") == 3


def test_what_the_log_has_not_introduced_is_asked_for() -> None:
    found = registry({7: avro.text_of("IntentRejected")})
    with pytest.raises(InfrastructureError, match="registry"):
        found.schema_text(8)
