"""Models of these tests are solved by their blocks, however small they are."""

import pytest

from copter.methods import choose


@pytest.fixture(autouse=True)
def no_small_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pivots of the whole program would come before the methods that are tested here."""
    monkeypatch.setattr(choose, "is_small", lambda facts, settings: False)
