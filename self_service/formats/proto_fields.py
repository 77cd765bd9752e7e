"""The fields that a compiled .proto file declares, as people read them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from mesh_events.schema.compatibility import Field, shortened
from self_service.formats.field_walk import Walk

_MESSAGE = FileDescriptorProto.MESSAGE_TYPE_FIELD_NUMBER
_NESTED = DescriptorProto.NESTED_TYPE_FIELD_NUMBER
_FIELD = DescriptorProto.FIELD_FIELD_NUMBER
_Comments = Mapping[tuple[int, ...], str]
"""Path of a declaration in its file -> the comment beside it."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is declared, by full name with a dot in front; comments by a field's place."""

    messages: dict[str, DescriptorProto] = field(default_factory=dict)
    docs: dict[str, list[str]] = field(default_factory=dict)
    enums: dict[str, str] = field(default_factory=dict)


def fields(files: FileDescriptorSet) -> list[Field]:
    """The fields of the last file's messages, nested ones behind their own; of very many the first.

    Paths begin with the message's name where the file declares several.
    """
    return (walk := Walk()).first(_of_file(files, walk))


def _of_file(files: FileDescriptorSet, walk: Walk) -> Iterator[Field]:
    known, file = _Known(), files.file[-1]
    for one in files.file:
        _learn_file(one, known)
    for top in file.message_type:
        path = top.name if len(file.message_type) > 1 else ""
        yield from _fields(f"{_package(file)}.{top.name}", path, known, (), walk)


def _package(file: FileDescriptorProto) -> str:
    return f".{file.package}" if file.package else ""


def _learn_file(file: FileDescriptorProto, known: _Known) -> None:
    comments = {
        tuple(one.path): one.leading_comments or one.trailing_comments
        for one in file.source_code_info.location
    }
    _learn_enums(file.enum_type, _package(file), known)
    _learn(file.message_type, _package(file), (_MESSAGE,), comments, known)


def _learn(
    level: Sequence[DescriptorProto],
    name: str,
    path: tuple[int, ...],
    comments: _Comments,
    known: _Known,
) -> None:
    for place, one in enumerate(level):
        here, full = (*path, place), f"{name}.{one.name}"
        known.messages[full] = one
        known.docs[full] = [comments.get((*here, _FIELD, at), "") for at in range(len(one.field))]
        _learn_enums(one.enum_type, full, known)
        _learn(one.nested_type, full, (*here, _NESTED), comments, known)


def _learn_enums(level: Sequence[EnumDescriptorProto], name: str, known: _Known) -> None:
    for one in level:
        known.enums[f"{name}.{one.name}"] = shortened(
            ", ".join(member.name for member in one.value)
        )


def _fields(
    name: str, path: str, known: _Known, seen: tuple[str, ...], walk: Walk
) -> Iterator[Field]:
    message = known.messages.get(name)
    if message is None or name in seen or not walk.enters(path, len(seen)):
        return
    for one, words in zip(message.field, known.docs[name], strict=True):
        below = f"{path}.{one.name}" if path else one.name
        entry = known.messages.get(one.type_name)
        inner, mark = one, "[]" if one.label == FieldDescriptorProto.LABEL_REPEATED else ""
        told = _told(one, message, known)
        if entry is not None and entry.options.map_entry:
            key, inner = entry.field
            mark = "{}"
            told = f"map of {_type(key, known)} to {_type(inner, known)} = {one.number}"
        yield Field(below, told, " ".join(words.split()) or None)
        # a well-known type is a value by itself
        if not inner.type_name.startswith(".google.protobuf."):
            yield from _fields(inner.type_name, below + mark, known, (*seen, name), walk)


def _told(one: FieldDescriptorProto, message: DescriptorProto, known: _Known) -> str:
    """A field's type and number, nearly as the schema has them."""
    told = f"{_type(one, known)} = {one.number}"
    if one.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {told}"
    if one.label == FieldDescriptorProto.LABEL_REQUIRED:
        return f"required {told}"
    if one.proto3_optional:
        return f"optional {told}"
    if one.HasField("oneof_index"):
        return f"{told}, one of {message.oneof_decl[one.oneof_index].name}"
    return told


def _type(one: FieldDescriptorProto, known: _Known) -> str:
    name = one.type_name
    if name in known.enums:
        return f"enum {name.removeprefix('.')} ({known.enums[name]})"
    if name:
        return f"message {name.removeprefix('.')}"
    kind: str = FieldDescriptorProto.Type.Name(one.type)
    return kind.removeprefix("TYPE_").lower()
