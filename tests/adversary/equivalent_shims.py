"""Changes of the shims that no test can see."""

SHIMS: dict[tuple[str, str, str], str] = {
    (
        "copter.shims.rounding",
        "most_work: int = 0",
        "0 -> 1",
    ): "a search of 1 // (2 + rows) nodes is none either",
    (
        "copter.shims.rounding",
        "least = closed(best, solution, self.most_work) if self.most_work > 0 else None",
        "self.most_work > 0 -> self.most_work >= 0",
    ): "a search of no nodes finds nothing",
    (
        "copter.shims.rounding",
        "return time.perf_counter() - started >= shim.time_limit_s",
        "time.perf_counter() - started >= shim.time_limit_s -> time.perf_counter() - started > shim.time_limit_s",
    ): "a clock that shows exactly the limit",
    (
        "copter.shims.draft",
        "if len(idle) > ASKED_EVERY and stop():",
        "len(idle) > ASKED_EVERY -> len(idle) >= ASKED_EVERY",
    ): "how often the clock is asked",
    (
        "copter.shims.restricted",
        "col_upper=1.0,",
        "1.0 -> 2.0",
    ): "the rows of the slots let no column be above one",
    (
        "copter.shims.restricted",
        "if gain[at] <= 1e-12:",
        "gain[at] <= 1e-12 -> gain[at] < 1e-12",
    ): "a gain that is exactly the tolerance",
    (
        "copter.shims.draft",
        "slots, columns, x = (none, none, np.zeros(0)) if slots is None or columns is None or x is None else (",
        "0 -> 1",
    ): "none of one number is none too",
    (
        "copter.shims.draft",
        "part = float(np.min(np.where(wanted > free, free / wanted, 1.0), initial=1.0))",
        "1.0 -> 2.0",
    ): "the next line brings it down to one",
    (
        "copter.shims.draft",
        "partial = np.flatnonzero(~taken & (x > support))",
        "x > support -> x >= support",
    ): "a share that is exactly the tolerance",
    (
        "copter.shims.draft",
        "if not self.value() <= value or len(self.exceeded()):",
        "self.value() <= value -> self.value() < value",
    ): "of two points of the same worth the one or the other",
    (
        "copter.shims.checked",
        "first = np.flatnonzero(np.diff(slots, prepend=-1))",
        "1 -> 2",
    ): "any number below zero differs from the first slot",
    (
        "copter.shims.shares",
        "first = np.flatnonzero(np.diff(slot, prepend=-1))",
        "1 -> 2",
    ): "any number below zero differs from the first slot",
    (
        "copter.shims.shares",
        "error = 2.0**-50 * np.diff(self.start) * size  # exceeds the rounding errors of the sums and of the scaling",
        "50 -> 51",
    ): "the sums and the scaling lose less than half as much",
    (
        "copter.shims.shares",
        "for at in np.flatnonzero(np.abs(total - self.limit) <= error).tolist():",
        "np.abs(total - self.limit) <= error -> np.abs(total - self.limit) < error",
    ): "a sum that far from the limit is on the same side of it exactly",
    (
        "copter.shims.feasibility",
        "error = np.where(whole, 0.0, 2.0 * HALF_ULP * (count + 1) * size)",
        "2.0 -> 3.0",
    ): "the terms of a few more rows are asked for, and say the same",
    (
        "copter.shims.feasibility",
        "error = np.where(whole, 0.0, 2.0 * HALF_ULP * (count + 1) * size)",
        "1 -> 2",
    ): "the terms of a few more rows are asked for, and say the same",
    (
        "copter.shims.feasibility",
        "error = np.where(whole, 0.0, 2.0 * HALF_ULP * (count + 1) * size)",
        "count + 1 -> count - 1",
    ): "k products and their sum lose k half units at most; what one product loses is within what is allowed",
    (
        "copter.shims.feasibility",
        "over = ~holds & ~(use <= upper + allowed + error)",
        "use <= upper + allowed + error -> use < upper + allowed + error",
    ): "the exact sum of a row that is as far above as that says the same",
    (
        "copter.shims.closing",
        "fine = np.flatnonzero(loss < budget)",
        "loss < budget -> loss <= budget",
    ): "an option that loses exactly the gap and its margin; the search leaves it out again",
    (
        "copter.shims.closing",
        "idle = np.flatnonzero(-self.best < budget)",
        "-self.best < budget -> -self.best <= budget",
    ): "an option that loses exactly the gap and its margin; the search leaves it out again",
    (
        "copter.shims.shares",
        "over = total > self.limit",
        "total > self.limit -> total >= self.limit",
    ): "a sum at the limit is worked out exactly in the next lines",
    (
        "copter.shims.feasibility",
        "SPLIT = 2.0**27 + 1.0",
        "2.0 ** 27 + 1.0 -> 2.0 ** 27 - 1.0",
    ): "the halves are as short: all of 220,000 products are exact, as they are with the figure itself",
    (
        "copter.shims.feasibility",
        "SPLIT = 2.0**27 + 1.0",
        "1.0 -> 2.0",
    ): "the halves are as short: all of 220,000 products are exact, as they are with the figure itself",
}
"""(module, line, change) to why it changes nothing that a test could see; looked at by hand."""
