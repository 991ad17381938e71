"""The table of requests as it was at a solve, without a copy as long as nothing asks for it after an edit."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from weakref import ref

MOST = 4  # tables of the past that follow edits; of more, all are copied


class SlotsThen(Mapping[Hashable, int]):
    """Slot of every request at a point in time, in the order added.

    Parameters
    ----------
    now, added_at : dict
        The present table, and the version at which each request was added. Whoever changes them says so before, by
        :meth:`Past.changes`.
    """

    def __init__(self, now: dict[Hashable, int], added_at: dict[Hashable, int]) -> None:
        self._now, self._added_at = now, added_at
        self._before: dict[Hashable, tuple[int, int] | None] = {}  # of changed requests; None for one that is new
        self._copied = False

    @property
    def table(self) -> dict[Hashable, int]:
        """The table as a dict, not to be changed; after an edit it is made when first asked for."""
        if self._before and not self._copied:
            self.copy()
        return self._now

    def copy(self) -> None:
        """Hold a table of one's own, which later edits do not change."""
        if self._copied:
            return
        table, gone = self._now.copy(), dict[Hashable, int]()
        for request, then in self._before.items():
            table.pop(request, None)
            if then is not None:
                table[request], gone[request] = then
        if gone:
            added = self._added_at
            table = dict(sorted(table.items(), key=lambda item: gone[item[0]] if item[0] in gone else added[item[0]]))
        self._now, self._added_at, self._before, self._copied = table, {}, {}, True

    def change(self, requests: Iterable[Hashable]) -> None:
        """Note that requests are about to be added or removed."""
        if self._copied:
            return
        before, now, added_at = self._before, self._now, self._added_at
        for request in requests:
            if request not in before:
                slot = now.get(request)
                before[request] = None if slot is None else (slot, added_at[request])

    def __getitem__(self, request: Hashable) -> int:
        return self.table[request]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, request: object) -> bool:
        return request in self.table

    def __reduce__(self) -> tuple[type, tuple[dict[Hashable, int]]]:
        """Prepare for pickle and copy: a plain dict."""
        return dict, (dict(self.table),)


class Past:
    """The tables of the past that are still in use."""

    def __init__(self) -> None:
        self._live: list[ref[SlotsThen]] = []
        self._last: SlotsThen | None = None

    def at(self, now: dict[Hashable, int], added_at: dict[Hashable, int]) -> SlotsThen:
        """Return the present table, to be kept; the same object until it changes."""
        if self._last is None:
            self._live = [each for each in self._live if each() is not None]
            if len(self._live) >= MOST:
                self.copy()
            self._last = SlotsThen(now, added_at)
            self._live.append(ref(self._last))
        return self._last

    def change(self, requests: Iterable[Hashable]) -> None:
        """Note that requests are about to be added or removed."""
        self._last = None
        for each in self._live:
            then = each()
            if then is not None:
                then.change(requests)

    def copy(self) -> None:
        """Let all tables of the past hold copies, because the present one is about to be replaced as a whole."""
        for each in self._live:
            then = each()
            if then is not None:
                then.copy()
        self._live.clear()
        self._last = None


def table_of(slot_of: Mapping[Hashable, int]) -> Mapping[Hashable, int]:
    """Return the dict behind a table, whose look-ups take less time."""
    return slot_of.table if isinstance(slot_of, SlotsThen) else slot_of
