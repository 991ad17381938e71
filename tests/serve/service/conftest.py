"""One service for the tests of a file, which each take clusters of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from served import Served


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service on loopback without a token."""
    for module in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(module, reason="the extra 'serve' is not installed")
    served = Served(tmp_path_factory.mktemp("serve") / "data", "--sync", "never", "--max-clusters", "60")
    yield served
    served.clear()
    code = served.stop()
    assert code == 0, served.log.read_text()
    served.no_traceback()


@pytest.fixture(autouse=True)
def clusters_go_with_their_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Take away what a test has made at the shared service."""
    yield
    if "service" in request.fixturenames:
        request.getfixturevalue("service").clear()
