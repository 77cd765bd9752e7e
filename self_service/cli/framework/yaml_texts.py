"""Files in YAML or JSON whose values are texts: nothing is read as a number, a date or a time.

YAML 1.1 would make 83 of 0123, 45000 of 12:30:00 and 1.1 of 1.10.
"""

from typing import Any

import yaml

_NULL, _BOOLEAN, _MERGE = (f"tag:yaml.org,2002:{one}" for one in ("null", "bool", "merge"))
_BOOLEANS = ("true", "false")


class RepeatedError(yaml.MarkedYAMLError):
    """A name stands twice in one mapping, of which only one would be kept."""


class _Loader(yaml.SafeLoader):
    """Plain scalars are texts, but for null, and for true and false, which become small."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as its base class has it
        first: [(tag, form) for tag, form in known if tag in (_NULL, _BOOLEAN, _MERGE)]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Raises RepeatedError; a name that is merged in may stand here anew."""
        seen = set[str]()
        for name in (name for name, _ in node.value if isinstance(name, yaml.ScalarNode)):
            if name.value in seen and name.tag != _MERGE:
                raise RepeatedError(problem_mark=name.start_mark)
            seen.add(name.value)
        return super().construct_mapping(node, deep)


def _boolean(_: _Loader, node: Any) -> str:
    # yes, no, on and off are texts, as in YAML 1.2
    small = str(node.value).lower()
    return small if small in _BOOLEANS else str(node.value)


_Loader.add_constructor(_BOOLEAN, _boolean)


def read_texts(text: str) -> Any:
    """What a text holds; raises yaml.YAMLError, ValueError, RecursionError."""
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a safe one
