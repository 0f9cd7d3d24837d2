"""Parameters as they stand in YAML, read as papermill reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from .parameters import ParameterError

_HEADING = "these parameters cannot be read"


class _Loader(yaml.SafeLoader):
    """YAML as papermill reads it: a date stays text."""


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
