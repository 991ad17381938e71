from typing import Any

class Steps:
    def solve(
        self, ws: Any, rows: Any, prices: Any, sigma: float, control: Any, rules: Any
    ) -> tuple[Any, float, int, int, float, bool, Any, bool]: ...
