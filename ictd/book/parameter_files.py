"""Parameters as they stand in YAML.

It is read as papermill reads it, but for what would be guessed: `1:30` is no 90, `010` is no 8, and a name
that is given twice is refused.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from .parameters import ParameterError

_HEADING = "these parameters cannot be read"


# Numbers to the base of 60, and of 8.
_GUESSED = re.compile(r".*:.*|[-+]?0[0-9_]+")


class _Loader(yaml.SafeLoader):
    """A date stays text, and so does a number that YAML reads in another base than it seems."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := sorted({str(name) for name in names if names.count(name) > 1}):
            raise yaml.YAMLError(f"{', '.join(twice)} given twice")
        return super().construct_mapping(node, deep)

    def number(self, node: yaml.ScalarNode) -> Any:
        text = self.construct_scalar(node)
        if _GUESSED.fullmatch(text):
            return text
        whole = node.tag.endswith(":int")
        return self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.number)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(path: Path) -> Any:
    """The contents of a YAML file.

    Raises:
        ParameterError: If it cannot be read, or is not YAML.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(_HEADING, [f"{path}: {error}"]) from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, where: str) -> Any:
    """What a YAML text says; `where` names it in messages.

    Raises:
        ParameterError: If it is not YAML.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    # A constructor meets ValueError in texts such as `0x_`, and deep nesting ends the stack.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ParameterError(_HEADING, [f"{where}: not YAML: {error}"]) from None


def mapping(data: Any, where: str) -> dict[str, Any]:
    """Values by name; nothing at all stands for no values.

    Raises:
        ParameterError: If the data are no NAME: VALUE pairs.
    """
    if not isinstance(data, dict | None):
        raise ParameterError(_HEADING, [f"{where}: expected NAME: VALUE pairs"])
    return {str(name): value for name, value in (data or {}).items()}
