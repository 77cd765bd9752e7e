import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_streams.provenance import NotProvenanceError, Origin, Provenance

IDS = st.text("abcXYZ019+/_-", min_size=1, max_size=22)


@given(st.text("abz09.-_", min_size=1), IDS, st.integers(0, 100_000), st.integers(0, 2**62))
def test_what_was_written_is_read(cluster: str, topic_id: str, partition: int, offset: int) -> None:
    place = Provenance(Origin(cluster, topic_id), partition, offset)
    assert Provenance.parse(place.encode()) == place


def test_a_topic_id_may_hold_slashes() -> None:
    """Kafka's client shows ids in base 64."""
    found = Provenance.parse(b"east/8Bj+q/78/R5a/3/17")
    assert found == Provenance(Origin("east", "8Bj+q/78/R5a"), 3, 17)


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"east/id/1",
        b"/id/1/2",
        b"east//1/2",
        b"east/id/-1/2",
        b"east/id/1/two",
        b"east/id/1/2 ",
        b"east/id/1/2/",
        b"east/id/\xb2/2",
        "east/id/1/\u0663".encode(),
    ],
)
def test_any_other_form_is_named(value: bytes | None) -> None:
    with pytest.raises(NotProvenanceError, match=r"mesh\.source should be <cluster>"):
        Provenance.parse(value)
