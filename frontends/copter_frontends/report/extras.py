"""The optional packages that a report needs."""

from __future__ import annotations

from importlib.util import find_spec

from copter_frontends.vocabulary import FrontendError

PACKAGES = ("pyarrow", "matplotlib", "jinja2")


class MissingExtraError(FrontendError, ImportError):
    """A package of an optional extra is not installed."""


def check_extras() -> None:
    """Raise MissingExtraError, with the extra to install, unless all of :data:`PACKAGES` are installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"a report needs {', '.join(missing)}: pip install {' '.join(missing)}")
