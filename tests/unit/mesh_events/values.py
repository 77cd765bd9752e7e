"""Any value of any type of the vocabulary, for hypothesis."""

import types
import typing
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

_LONGS = st.integers(-(2**63), 2**63 - 1)
# Avro holds milliseconds
_TIMES = st.datetimes(timezones=st.just(UTC)).map(
    lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)
)
_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=30),
    int: _LONGS,
    bool: st.booleans(),
    datetime: _TIMES,
}


def any_of(model: type[BaseModel]) -> st.SearchStrategy[Any]:
    """Values of `model` with every field drawn, in all that Avro can hold."""
    fields = {name: _any(info.annotation) for name, info in model.model_fields.items()}
    return st.builds(model, **fields)


def _any(annotation: Any) -> st.SearchStrategy[Any]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*(st.none() if part is type(None) else _any(part) for part in arguments))
    if origin is list:
        return st.lists(_any(arguments[0]), max_size=4)
    if origin is dict:
        return st.dictionaries(_any(arguments[0]), _any(arguments[1]), max_size=4)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return st.sampled_from(list(annotation))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return any_of(annotation)
    return _SCALARS[annotation]
