"""Whether a schema in a file may be the next version of its subject, and whom it would break."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from mesh_events.compatibility import Break, Level, breaks
from mesh_events.errors import InvalidValueError
from projections.access import ENTITLED
from projections.image import Image
from self_service.cli import subjects
from self_service.cli.output import printable
from self_service.cli.schema_registry import Subjects, Version

_SIDES = ("-key", "-value")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file.

    against: the versions that it was compared with; () for the first of its subject.
    found: (version, place) of each break.
    consumers: applications that read the product on the topic.
    """

    path: Path
    subject: str
    level: Level
    against: tuple[int, ...]
    found: tuple[tuple[int, Break], ...]
    consumers: tuple[str, ...]


def subject_of(name: str, *, key: bool = False) -> str:
    """A subject by its own name or that of its topic or product."""
    return name if name.endswith(_SIDES) else f"{name}-{'key' if key else 'value'}"


def topic_of(subject: str) -> str:
    """The topic whose keys or values a subject describes."""
    return next((subject.removesuffix(one) for one in _SIDES if subject.endswith(one)), subject)


def checked(
    image: Image, registry: Subjects, path: Path, subject: str, level: Level | None
) -> Outcome:
    """Compare the schema in a file with those of its subject.

    level: None for the subject's own; a published product's values are to stay FULL.

    Raises:
        InvalidValueError: the file is no Avro schema, or the subject holds no Avro.
    """
    text = subjects.read_schema(path)
    asked = level or _level(image, registry, subject)
    numbers = registry.numbers(subject)
    compared = numbers if asked.is_transitive else numbers[-1:]
    versions = [one for number in compared if (one := registry.version(subject, number))]
    found = [(one.number, each) for one in versions for each in _breaks(subject, one, text, asked)]
    against = tuple(one.number for one in versions)
    return Outcome(path, subject, asked, against, tuple(found), consumers(image, subject))


def consumers(image: Image, subject: str) -> tuple[str, ...]:
    """Applications that read the products on a subject's topic."""
    topic = topic_of(subject)
    products = {one.id for one in image.catalog.values() if one.topic == topic}
    return tuple(
        sorted(
            {
                one.application
                for one in image.access.requests.values()
                if one.product in products and one.state in ENTITLED
            }
        )
    )


def _level(image: Image, registry: Subjects, subject: str) -> Level:
    own = registry.level(subject)
    published = any(one.topic == topic_of(subject) for one in image.catalog.values())
    strict = (Level.FULL, Level.FULL_TRANSITIVE)
    return Level.FULL if published and own not in strict else own


def _breaks(subject: str, version: Version, text: str, level: Level) -> list[Break]:
    if version.kind != "AVRO":
        raise InvalidValueError(
            f"{subject} holds {version.kind}, and the file is Avro: give it another subject"
        )
    return breaks(version.text, text, level)


def write_junit(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write what a CI server reads: one test case for each file."""
    failed = sum(bool(one.found) for one in outcomes)
    suite = ET.Element(
        "testsuite", name="sdm schema check", tests=str(len(outcomes)), failures=str(failed)
    )
    for one in outcomes:
        case = ET.SubElement(
            suite, "testcase", classname=one.subject, name=printable(str(one.path))
        )
        if one.found:
            text = "\n".join(f"version {number}: {found}" for number, found in one.found)
            message = f"breaks {one.level} of {one.subject}"
            ET.SubElement(case, "failure", message=message).text = printable(text)
    try:
        ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise InvalidValueError(f"{path}: {error.strerror}") from error
