"""What a schema in a file refers to, as options say it: `NAME=SUBJECT[:VERSION]`."""

import re
from collections.abc import Iterable

from mesh_events.schema.definition import Reference
from self_service.cli.framework.exits import NotFoundError, UsageError
from self_service.cli.schema.registry import Subjects

_FORM = re.compile(r"([^=]+)=(.+?)(?::([0-9]{1,9}))?")


def referred(registry: Subjects, given: Iterable[str] | None) -> tuple[Reference, ...]:
    """The references that options tell, each with the version that is meant.

    Raises:
        UsageError: one is not of the form, or two have the same name.
        NotFoundError: the registry has no such subject or version.
    """
    found: dict[str, Reference] = {}
    for text in given or ():
        match = _FORM.fullmatch(text)
        if match is None:
            raise UsageError(f"--reference {text!r}: write it as NAME=SUBJECT or NAME=SUBJECT:N")
        name, said, number = match[1].strip(), match[2].strip(), match[3]
        if name in found:
            raise UsageError(f"--reference {name} is given twice: one name means one schema")
        subject = registry.subject(said)
        version = registry.version(subject, int(number) if number else "latest")
        if version is None:
            known = ", ".join(map(str, registry.numbers(subject)))
            raise NotFoundError(
                f"--reference {text}: {subject} has no version {number}: there are {known}"
                if known
                else f"--reference {text}: the registry has no subject {said}: register it first, "
                f"`sdm schema register {said} FILE --shared`"
            )
        found[name] = Reference(name, subject, version.number)
    return tuple(found.values())
