"""What a product promises, as people write it: quality under either name, tiers, a YAML file."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mesh_events.errors import InvalidValueError
from mesh_events.intents import Quality
from self_service.cli.framework.output import note

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_TOLD = 3
_LONGEST = 40
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
        raise InvalidValueError(f"{text!r} is not a quality: use {', '.join(_NAMES)}")
    return found


def told_quality(text: str) -> Quality:
    """The quality under any of its names; a note on stderr where the catalog has another one."""
    found = quality_of(text)
    if text.strip().casefold() != found.value.casefold():
        note(f"quality {text.strip()} is another name of {found.value}, which the catalog shows")
    return found


def tier_of(text: str | int) -> int:
    """The service tier in `1`, `tier1` or `Tier 1`; raises InvalidValueError."""
    found = _TIER.fullmatch(str(text).strip().casefold())
    if found is None:
        raise InvalidValueError(f"{text!r} is not a service tier: use 1 (best), 2 or 3")
    return int(found[1])


class Promise(BaseModel):
    """What may stand in a product file or be given as options; nothing given is None."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    product: str | None = None
    topic: str | None = None
    description: str | None = None
    owner: str | None = None
    quality: str | None = None
    sla: str | None = None
    tags: list[str] | None = None
    version: str | None = None

    def over(self, other: "Promise") -> "Promise":
        """These values, and the other's where nothing is given here."""
        given = {name: value for name, value in self if value is not None}
        return other.model_copy(update=given)

    def need(self, *names: str) -> Mapping[str, Any]:
        """The named values; raises InvalidValueError naming those that are missing."""
        missing = [name for name in names if not getattr(self, name)]
        if missing:
            options = ", ".join(f"--{name}" for name in missing)
            raise InvalidValueError(
                f"a product needs {options}: give the options, or set the fields in the file"
            )
        return {name: getattr(self, name) for name in names}


def read_promise(path: Path) -> Promise:
    """A product file, YAML or JSON; raises InvalidValueError that names what is wrong."""
    import yaml

    from self_service.cli.framework.given_files import read_text
    from self_service.cli.framework.yaml_texts import read_texts

    try:
        return Promise.model_validate(read_texts(read_text(path)))
    except OSError as error:
        raise InvalidValueError(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        raise InvalidValueError(_no_product(path, error)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidValueError(not_yaml(path, error)) from error


def not_yaml(path: Path, error: Exception) -> str:
    """What is wrong with a file that is not YAML, and where; nothing of what stands there."""
    from self_service.cli.framework.yaml_texts import RepeatedError

    mark = getattr(error, "problem_mark", None)
    place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    wrong = "has a duplicate name" if isinstance(error, RepeatedError) else "is not YAML"
    return f"{path} {wrong}{place}"


def _no_product(path: Path, error: ValidationError) -> str:
    """What is wrong with a file that describes no product; little of a file of something else."""
    found = error.errors(include_url=False, include_input=False)
    names = [".".join(map(str, one["loc"])) for one in found]
    known = f"a product has {', '.join(Promise.model_fields)}"
    # a whole line of another program's file can be a name to YAML
    if not all(_FIELD.fullmatch(name) for name in names):
        return f"{path} does not describe a product: {known}"
    pairs = zip(names[:_TOLD], found, strict=False)
    told = [f"{_short(name)}: {one['msg']}" for name, one in pairs]
    more = [f"and {len(found) - _TOLD} more"] if len(found) > _TOLD else []
    return f"{path} does not describe a product: {'; '.join([*told, *more])}; {known}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
