"""Shared code of the YAML readers: loading a file and checking its entries field by field."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from copter.storage.inputs import contents
from copter_frontends.vocabulary import InvalidClusterError

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
