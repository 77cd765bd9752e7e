"""OpenLineage's own JSON Schemas, and what of an event does not conform to them."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

FOLDER = Path(__file__).parent / "fixtures" / "openlineage"
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    schema["$id"]: schema
    for schema in (json.loads(path.read_text()) for path in FOLDER.rglob("*.json"))
}
"""Address -> schema."""
CORE = next(address for address in SCHEMAS if address.endswith("/OpenLineage.json"))
# without a way to retrieve: an address that is not in the folder is an error, and never asked for
_REGISTRY: Registry[Any] = Registry().with_resources(
    (address, Resource.from_contents(schema)) for address, schema in SCHEMAS.items()
)
_FORMATS = FormatChecker(formats=("uuid",))


@_FORMATS.checks("date-time", raises=ValueError)
def _is_moment(text: object) -> bool:
    return not isinstance(text, str) or datetime.fromisoformat(text).tzinfo is not None


@_FORMATS.checks("uri", raises=ValueError)
def _is_uri(text: object) -> bool:
    return not isinstance(text, str) or (
        bool(urlsplit(text).scheme) and not any(one.isspace() for one in text)
    )


def findings(event: Mapping[str, Any]) -> list[str]:
    """What is wrong with an event: its frame, and every facet by the schema that it names."""
    found = _wrong(event, event.get("schemaURL", "no schemaURL"))
    if not str(event.get("schemaURL")).startswith(f"{CORE}#"):
        found.append(f"schemaURL: {event.get('schemaURL')} is not of {CORE}")
    for place, name, facet in facets(event):
        address = facet.get("_schemaURL", "no _schemaURL")
        frame = SCHEMAS.get(address.partition("#")[0], {})
        if frame.get("properties", {}).get(name) != {"$ref": f"#{address.partition('#')[2]}"}:
            found.append(f"{place}.{name}: {address} is not the schema of this facet")
        else:
            found += [f"{place}.{name}: {one}" for one in _wrong(facet, address)]
    return found


def facets(event: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(where it stands, its name, facet) of every facet in an event."""
    holders = [("run", event["run"]), ("job", event["job"])]
    holders += [(f"{side}.{one['name']}", one) for side in _SIDES for one in event[side]]
    for place, holder in holders:
        for kind in ("facets", "inputFacets", "outputFacets"):
            for name, facet in holder.get(kind, {}).items():
                yield place, name, facet


def _wrong(value: object, address: str) -> list[str]:
    validator = Draft202012Validator({"$ref": address}, registry=_REGISTRY, format_checker=_FORMATS)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


_SIDES = ("inputs", "outputs")
