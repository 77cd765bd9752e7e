"""The fault run's oracle reads a signature as the mesh writes it, or it judges an empty log."""

from mesh_events.codec import Wire
from mesh_events.record import SIGNATURE, SIGNER
from tests.faults.oracle import signer_of
from tests.memory_log import key

KEY, VALUE = b"domain/east", b"\x00\x00\x00\x00\x07said"


def signed(by: str, root: str) -> Wire:
    """A record of the mesh of this root key."""
    signature = key(by).sign(key(root).public, KEY, VALUE)
    headers = {SIGNER: key(by).public.encode(), SIGNATURE: signature}
    return Wire(KEY, VALUE, headers.items())  # type: ignore[arg-type]


def test_a_signature_names_its_signer_in_its_own_mesh_only() -> None:
    record = signed("east", "root")
    headers = dict(record.headers)
    found = [signer_of(headers, KEY, VALUE, key(root).public) for root in ("root", "other")]
    assert found == [key("east").public, None]
    assert signer_of(headers, KEY, VALUE + b"!", key("root").public) is None
