"""What a product promises, as people write it: quality under either name, tiers, a YAML file."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mesh_events.errors import InvalidValueError
from mesh_events.intents import Quality
from self_service.cli.output import note

_TIER = re.compile(r"(?:tier[ _-]?)?([123])")
_NAMES = {
    "raw": Quality.RAW,
    "standard": Quality.STANDARD,
    "curated": Quality.STANDARD,
    "enriched": Quality.ENRICHED,
    "authoritative": Quality.ENRICHED,
}


QUALITIES = "RAW, STANDARD (also called curated) or ENRICHED (also called authoritative)."
"""The qualities and their other names, for a help."""


def quality_of(text: str) -> Quality:
    """The quality under any of its names; raises InvalidValueError."""
    found = _NAMES.get(text.strip().casefold())
    if found is None:
        raise InvalidValueError(f"{text!r} is no quality: use {', '.join(_NAMES)}")
    return found


def told_quality(text: str) -> Quality:
    """The quality under any of its names, telling on stderr where the catalog has another one."""
    found = quality_of(text)
    if text.strip().casefold() != found.value.casefold():
        note(f"quality {text.strip()} is another name of {found.value}, which the catalog shows")
    return found


def tier_of(text: str | int) -> int:
    """The service tier in `1`, `tier1` or `Tier 1`; raises InvalidValueError."""
    found = _TIER.fullmatch(str(text).strip().casefold())
    if found is None:
        raise InvalidValueError(f"{text!r} is no service tier: use 1 (best), 2 or 3")
    return int(found[1])


class Promise(BaseModel):
    """What may stand in a product file or be given as options; nothing given is None."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    product: str | None = None
    topic: str | None = None
    description: str | None = None
    owner: str | None = None
    quality: str | None = None
    sla: str | int | None = None
    tags: list[str] | None = None
    version: str | None = Field(default=None, coerce_numbers_to_str=True)

    def over(self, other: "Promise") -> "Promise":
        """These values, and the other's where nothing is given here."""
        given = {name: value for name, value in self if value is not None}
        return other.model_copy(update=given)

    def need(self, *names: str) -> Mapping[str, Any]:
        """The named values; raises InvalidValueError naming those that are missing."""
        missing = [name for name in names if not getattr(self, name)]
        if missing:
            options = ", ".join(f"--{name}" for name in missing)
            raise InvalidValueError(f"a product needs {options}: give it, or write it in the file")
        return {name: getattr(self, name) for name in names}


def read_promise(path: Path) -> Promise:
    """A product file, YAML or JSON; raises InvalidValueError that names what is wrong."""
    import yaml

    try:
        found = yaml.safe_load(path.read_text("utf-8"))
        return Promise.model_validate(found)
    except OSError as error:
        raise InvalidValueError(f"{path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise InvalidValueError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        known = ", ".join(Promise.model_fields)
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InvalidValueError(f"{path}: {wrong or 'empty'}; a product has {known}") from error
