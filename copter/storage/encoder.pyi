from collections.abc import Callable
from typing import Any

import numpy as np

DEEPEST: int
ARRAYS: dict[bytes, str]
CODES: dict[np.dtype[Any], bytes]

class Encoder:
    wrong: Exception | None
    def __init__(self, copies: bool, instead: Callable[[Any], Any]) -> None: ...
    def pieces(self, value: Any) -> list[bytes | memoryview]: ...
    def whole(self, value: Any) -> bytes: ...
    def operation(self, name: str, arguments: tuple[Any, ...]) -> bytes: ...
