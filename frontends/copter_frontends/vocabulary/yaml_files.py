"""Shared code of the YAML readers: loading a file and checking its entries field by field."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from copter.storage.inputs import contents
from copter_frontends.vocabulary import InvalidClusterError

Check = Callable[[str, Any], Any]
"""Check of a field: takes its position in the file and its value, and returns the value or raises."""

MOST_BYTES = 16_000_000  # most bytes of a YAML file
MOST_COUNT = 1_000_000  # most nodes, and most GPUs of a node
LARGEST = 1e300  # largest accepted number, so that results stay finite


def load_yaml(path: str | Path) -> Any:
    """Return the contents of a YAML file; raises InvalidClusterError, with the file's name, if it cannot be read."""
    try:
        # In the optional extra `frontends`; the engine alone does not need it.
        import yaml  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise InvalidClusterError(f"{path}: reading it needs PyYAML: pip install pyyaml") from error
    try:
        return yaml.safe_load(contents(path, MOST_BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise InvalidClusterError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidClusterError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error


def check_fields(where: str, entry: Any, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """Return an entry that is a mapping with the required fields and no others but the optional ones."""
    fields = [*required, *optional]
    if not isinstance(entry, dict):
        raise InvalidClusterError(f"{where}: must be a mapping with {', '.join(fields)}, not {entry!r}")
    missing = [name for name in required if name not in entry]
    unknown = [str(name) for name in entry if name not in fields]
    if missing or unknown:
        fault = f"lacks {', '.join(missing)}" if missing else f"has the unknown field {', '.join(unknown)}"
        raise InvalidClusterError(f"{where}: {fault}; the fields are {', '.join(fields)}")
    return entry


def read_fields(
    where: str, entry: Any, required: Mapping[str, Check], optional: Mapping[str, Check] = MappingProxyType({})
) -> dict[str, Any]:
    """Return an entry with the required fields and perhaps the optional ones, each as its check returns it."""
    given = check_fields(where, entry, required, optional)
    checks = {**required, **optional}
    return {name: checks[name](f"{where}.{name}", given[name]) for name in checks if name in given}


def read_entries(
    path: str | Path,
    name: str,
    entries: Any,
    required: Mapping[str, Check],
    optional: Mapping[str, Check] = MappingProxyType({}),
) -> list[tuple[str, dict[str, Any]]]:
    """Return each entry of a file's list with its position in the file, for messages, as :func:`read_fields` does."""
    if not isinstance(entries, list):
        raise InvalidClusterError(f"{path}: {name!r} must be a list")
    places = [(f"{path}: {name}[{i}]", entry) for i, entry in enumerate(entries)]
    return [(where, read_fields(where, entry, required, optional)) for where, entry in places]


def read_word(where: str, value: Any) -> str:
    """Return an entry that must be a string with at least one character.

    Raises
    ------
    InvalidClusterError
        Otherwise; the message begins with `where`, the entry's position in the file.
    """
    if not isinstance(value, str) or not value:
        raise InvalidClusterError(f"{where}: must be a word, not {value!r}")
    return value


def read_count(where: str, value: Any, least: int, most: int = MOST_COUNT) -> int:
    """Return a whole number within limits; a very large count would exhaust memory."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidClusterError(f"{where}: must be a whole number of {least} or more, not {value!r}")
    if value > most:
        raise InvalidClusterError(f"{where}: must be at most {most:,}")
    return value


def read_positive(where: str, value: Any) -> float:
    """Return a finite positive number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= LARGEST:
        raise InvalidClusterError(f"{where}: must be a number above 0, not {value!r}")
    return float(value)


def read_number(where: str, value: Any) -> float:
    """Return a finite positive number; accepts text such as 1e7, which YAML does not read as a number."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    return read_positive(where, value)
