"""Whether a schema in a file may be the next version of its subject, and whom it would break."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from mesh_events.errors import InvalidValueError, RefusedError
from mesh_events.schema.compatibility import Break, Change, Level, breaks, changes
from mesh_events.schema.definition import Definition, Kind, Reference, Version
from projections.image import Image
from self_service.cli.framework.output import printable
from self_service.cli.schema.registry import Subjects
from self_service.cli.schema.subjects import topic_of
from self_service.cli.topic.readers import readers


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file.

    against: the versions that it was compared with; () for the first of its subject.
    found: (version, place) of each break.
    consumers: applications, statements and connectors that read the topic.
    fault: why it could not be compared; "" where it was.
    code: of that refusal.
    """

    path: Path
    subject: str
    level: Level
    against: tuple[int, ...]
    found: tuple[tuple[int, Break], ...]
    consumers: tuple[str, ...]
    fault: str = ""
    code: str = ""


UNUSABLE = ("invalid_value", "schema_not_usable", "unsupported_pattern")
"""Codes of a refusal that is about one file."""


def faulty(path: Path, subject: str, error: RefusedError) -> Outcome:
    """The outcome of a file that cannot be compared."""
    told = str(error)
    named = told if str(path) in told else f"{path}: {told}"
    return Outcome(path, subject, Level.NONE, (), (), (), named, error.code)


def checked(
    image: Image,
    registry: Subjects,
    path: Path,
    subject: str,
    level: Level | None = None,
    kind: Kind | None = None,
    references: Iterable[Reference] = (),
) -> Outcome:
    """Compare the schema in a file with those of its subject.

    Avro is compared field by field; JSON Schema and Protobuf are for the registry to judge, and
    it judges by the subject's own level.

    level: None for the subject's own; a published product's Avro is to stay FULL.
    kind: the file's language, None for what its name says.
    references: what it refers to beside what the subject's latest version does.

    Raises:
        NotJudgedError: the registry cannot say.
        InvalidValueError: the file is no schema, or the subject holds another language; or a level
            is given that the registry does not judge by.
    """
    draft = registry.draft(subject, path, kind, references)
    return judged(image, registry, path, subject, draft, level)


def judged(
    image: Image,
    registry: Subjects,
    path: Path,
    subject: str,
    draft: Definition,
    level: Level | None = None,
) -> Outcome:
    """As `checked`, for a schema that was read already."""
    asked = _asked(image, registry, subject, level, draft.kind)
    numbers = registry.numbers(subject)
    compared = numbers if asked.is_transitive else numbers[-1:]
    versions = [one for number in compared if (one := registry.version(subject, number))]
    found = [
        (one.number, each)
        for one in versions
        for each in _breaks(registry, subject, one, draft, asked)
    ]
    against = tuple(one.number for one in versions)
    return Outcome(path, subject, asked, against, tuple(found), consumers(image, subject))


def consumers(image: Image, subject: str) -> tuple[str, ...]:
    """Who reads a subject's topic: applications, statements and connectors."""
    found = readers(image, topic_of(subject))
    return tuple(sorted({one["name"] for one in found if one["kind"] != "link"}))


def _level(image: Image, registry: Subjects, subject: str) -> Level:
    own = registry.level(subject)
    published = any(one.topic == topic_of(subject) for one in image.catalog.values())
    strict = (Level.FULL, Level.FULL_TRANSITIVE)
    return Level.FULL if published and own not in strict else own


def _asked(image: Image, registry: Subjects, subject: str, level: Level | None, kind: str) -> Level:
    if kind == Kind.AVRO:
        return level or _level(image, registry, subject)
    own = registry.level(subject)
    if level not in (None, own):
        raise InvalidValueError(
            f"{subject}: the registry checks {kind} at the subject's own level, {own}: "
            "--level is for Avro; leave it out, or set the subject's level in the registry"
        )
    return own


def same_kind(subject: str, version: Version, draft: Definition) -> None:
    """Raise InvalidValueError where a file is in another language than its subject."""
    if version.kind != draft.kind:
        raise InvalidValueError(
            f"{subject} holds {version.kind}, and the file is {draft.kind}: give another "
            "subject, or the file's language with --type"
        )


def _breaks(
    registry: Subjects, subject: str, version: Version, draft: Definition, level: Level
) -> list[Break]:
    same_kind(subject, version, draft)
    if draft.kind == Kind.AVRO:
        old, new = (registry.whole(subject, one) for one in (version.schema, draft))
        return breaks(old, new, level)
    said = registry.refusal(subject, version.number, draft)
    if said is None:
        return []
    if not said:
        # some registries tell no more than yes or no
        before, after = (registry.fields(subject, one) for one in (version.schema, draft))
        told = "; ".join(map(_told, changes(before, after))) or "no field"
        said = f"the registry gives no reason; what changed: {told}"
    return [Break("the value", said, _READERS[level.value.removesuffix("_TRANSITIVE")])]


_READERS = {
    "BACKWARD": "new readers of old records",
    "FORWARD": "old readers of new records",
    "FULL": "new or old readers",
    "NONE": "readers",
}


def _told(change: Change) -> str:
    if change.before is None or change.after is None:
        return f"{change.path} {change.what}"
    return f"{change.path} from {change.before} to {change.after}"


def write_junit(path: Path, outcomes: Sequence[Outcome], *, strict: bool = False) -> None:
    """Write what a CI server reads: one test case for each file.

    strict: what was compared with nothing is a failure, and else a test that was skipped.
    """
    failed = sum(bool(one.found or one.fault) or (strict and not one.against) for one in outcomes)
    skipped = 0 if strict else sum(not one.against and not one.fault for one in outcomes)
    suite = ET.Element(
        "testsuite", name="sdm schema check", tests=str(len(outcomes)), failures=str(failed)
    )
    suite.set("skipped", str(skipped))
    for one in outcomes:
        case = ET.SubElement(
            suite, "testcase", classname=printable(one.subject), name=printable(str(one.path))
        )
        if one.fault:
            ET.SubElement(case, "failure", message=printable(one.fault))
        elif one.found:
            text = "\n".join(f"version {number}: {found}" for number, found in one.found)
            message = f"breaks {one.level} of {one.subject}"
            ET.SubElement(case, "failure", message=message).text = printable(text)
        elif not one.against:
            message = f"the registry has no version of {one.subject}: nothing was compared"
            ET.SubElement(case, "failure" if strict else "skipped", message=message)
    try:
        ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise InvalidValueError(f"{path}: {error.strerror}") from error
