"""Calls to all shards, robust against dying shards; batches of edits succeed on all shards or on none."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from copter.runtime.clock import CLOCK
from copter.runtime.errors import CopterError, SnapshotError
from copter.storage.disk import DISK
from copter.storage.encoding import Reader, encode
from copter.storage.files import read_file, sync_folder, write_atomically
from copter.storage.sealing import Seal
from copter_distributed.messages.errors import ShardLostError, SupersededError
from copter_distributed.messages.messages import Call, Changes, Hello
from copter_distributed.messages.turns import PENDING, Turn
from copter_distributed.messages.wire import call_from, plain_call
from copter_distributed.shards.transport import LATE, LOST, ShardOptions, Transport

BATCH = Seal(b"\x89COPTERP", 1, "a pending batch of a distributed session")
TRIES = 60  # most attempts of one call to a shard that keeps dying
PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0  # first and longest pause between attempts


class Exchange:
    """The coordinator's side of all calls.

    Parameters
    ----------
    transport : Transport
    options : ShardOptions
    shards : sequence of int
        Numbers of the shards, which are started.

    Attributes
    ----------
    out_of_step : set of int
        Shards that do not know which columns the coordinator holds, because they died or answered too late.
    late : set of int
        Shards that did not answer their last call in time.
    lost : int
        Number of times a shard was found dead.
    """

    def __init__(self, transport: Transport, options: ShardOptions, shards: Sequence[int]) -> None:
        self.transport, self.options = transport, options
        self.shards: list[int] = []
        self.out_of_step: set[int] = set()
        self.late: set[int] = set()
        self.lost = 0
        self._number = 0
        self._births: dict[int, int] = {}
        self._broken: str | None = None  # why further edits are refused
        # whether the disk is free of batches of this coordinator that are done or undecided
        self._struck_out = True
        self.turn = Turn(options.directory)
        transport.reserve(shards)
        for shard in shards:
            self.join(shard)

    def join(self, shard: int) -> None:
        """Start or connect to a shard; it is out of step until it knows which columns the coordinator holds."""
        self.transport.start(shard, self.options)
        self.shards.append(shard)
        self.out_of_step.add(shard)

    def leave(self, shard: int) -> None:
        """End a shard for good."""
        self.transport.stop(shard)
        self.shards.remove(shard)
        self.out_of_step.discard(shard)
        self.late.discard(shard)
        self._births.pop(shard, None)

    # Calls ----------------------------------------------------------------------------------------------------------

    def ask(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a method of shards and return their answers by shard; calls to dead shards are repeated.

        Use it only for methods that may be called twice. If a shard raises an error, it is raised here after all shards
        have answered.

        Raises
        ------
        ShardLostError
            If a shard died and cannot come back.
        """
        todo, found = dict(arguments), {}
        pause = PAUSE_S
        for _ in range(TRIES):
            answers = self._call(method, todo)
            for shard, answer in answers.items():
                if answer is LOST:
                    self._births.pop(shard, None)
                    self.found_dead(shard)
                else:
                    found[shard] = answer
                    del todo[shard]
            if not todo:
                return {shard: result_of(found[shard]) for shard in arguments}
            CLOCK.get().sleep(pause)
            pause = min(2.0 * pause, LONGEST_PAUSE_S)
        raise ShardLostError(f"shard {min(todo)} does not come back after {TRIES} calls")

    def every(self, method: str, *arguments: Any) -> dict[int, Any]:
        """Call :meth:`ask` for all shards with the same arguments."""
        return self.ask(method, dict.fromkeys(self.shards, arguments))

    def in_time(
        self, method: str, shards: Sequence[int], arguments: tuple[Any, ...], seconds: float, again: bool = False
    ) -> dict[int, Any]:
        """Call a method of shards and return the answers within `seconds`; other shards become out of step.

        Late shards are in :attr:`late` until they answer. With `again`, dead shards are called again until the time is
        up.
        """
        started, pause = CLOCK.get().monotonic(), PAUSE_S
        todo, found = set(shards), {}
        while todo:
            left = seconds - (CLOCK.get().monotonic() - started)
            answers = self._call(method, dict.fromkeys(sorted(todo), arguments), max(left, 0.0))
            for shard, answer in answers.items():
                if answer is LOST:
                    self._births.pop(shard, None)
                    self.found_dead(shard)
                elif answer is LATE:
                    self.out_of_step.add(shard)
                    self.late.add(shard)
                else:
                    found[shard] = result_of(answer)
                    self.late.discard(shard)
            todo = {shard for shard in todo if answers[shard] is LOST}
            if not again or left <= 0.0:
                break
            if todo:
                CLOCK.get().sleep(min(pause, max(left, 0.0)))
                pause = min(2.0 * pause, LONGEST_PAUSE_S)
        return found

    def _call(
        self, method: str, arguments: Mapping[int, tuple[Any, ...]], seconds: float | None = None
    ) -> dict[int, Any]:
        """Call shards and return their answers. A call that a restarted shard has refused counts as lost.

        A shard whose birth is unknown is asked for it first: a message that was sent to its earlier life, and arrives
        after its restart, must not be taken for one of now.
        """
        started = CLOCK.get().monotonic()
        new = {shard: () for shard in arguments if shard not in self._births and method != "hello"}
        hellos = self._send("hello", new, seconds) if new else {}
        silent = {shard: answer for shard, answer in hellos.items() if answer is LOST or answer is LATE}
        known = {shard: given for shard, given in arguments.items() if shard not in silent}
        if new and seconds is not None:
            seconds = max(seconds - (CLOCK.get().monotonic() - started), 0.0)
        answers = silent | (self._send(method, known, seconds) if known else {})
        return {shard: answers[shard] for shard in arguments}

    def _send(
        self, method: str, arguments: Mapping[int, tuple[Any, ...]], seconds: float | None = None
    ) -> dict[int, Any]:
        """Send a call; a shard that has restarted becomes out of step."""
        births = [self._births[shard] for shard in arguments if shard in self._births]
        answers = self.transport.call(method, arguments, self.turn.next(births), seconds)
        for shard, answer in answers.items():
            if answer is LOST or answer is LATE:
                continue
            birth = answer[2]
            if self._births.setdefault(shard, birth) != birth:
                if method == "hello":
                    self._births[shard] = birth
                    self.found_dead(shard)
                else:
                    answers[shard] = LOST
        return answers

    def found_dead(self, shard: int) -> None:
        """Handle a dead shard; raises ShardLostError if it cannot be read back."""
        self.lost += 1
        self.late.discard(shard)
        self.out_of_step.add(shard)
        if self.options.directory is None:
            raise ShardLostError(
                f"shard {shard} died, and its requests with it: give the session a directory that all shards see"
            )

    # Edits ----------------------------------------------------------------------------------------------------------

    def apply(self, calls: Mapping[int, Sequence[Call]]) -> dict[int, Changes]:
        """Apply a batch of edits on all these shards or on none.

        Two phases: every shard prepares its edits so that they can be undone. When all have, the coordinator writes its
        decision to the directory, if there is one, and every shard commits. A shard that dies in between repeats its
        part.

        Returns
        -------
        dict
            Changes of held columns by shard; shards that died are missing, and are out of step.
        """
        if self._broken is not None:
            raise ShardLostError(self._broken)
        if not self._struck_out:
            self._strike_out()
        self._number += 1
        number, given = self._number, {shard: list(each) for shard, each in calls.items()}
        alone = len(given) == 1  # with one shard, its journal decides
        try:
            versions = self.ask("prepare", {shard: (number, each) for shard, each in given.items()})
            if not alone:
                self._write_down(number, given, versions)
        except BaseException:
            # a shard of unknown birth has died, and the batch with it
            there = {shard: () for shard in given if shard in self._births}
            if there:
                self.transport.call("abort", there, self.turn.next(self._births[shard] for shard in there))
            raise
        try:
            changes = self._decide(number, given, versions)
        except SnapshotError:  # the only shard's disk refused, so nothing has changed
            raise
        except BaseException as error:
            self.give_up("a batch of edits was decided for, and not every shard is known to have done it", error)
            raise
        if not alone:
            with suppress(SnapshotError):  # repeated before the next batch
                self._strike_out()
        return changes

    def give_up(self, why: str, error: BaseException) -> None:
        """Refuse all further edits; raises ShardLostError if the cause is an error of the disk."""
        self._broken = f"{why}: go on with this session by Session.load, which does all of it or nothing"
        if isinstance(error, SnapshotError):
            raise ShardLostError(self._broken) from error

    def _decide(
        self, number: int, calls: Mapping[int, list[Call]], versions: Mapping[int, tuple[int, int]]
    ) -> dict[int, Changes]:
        """Tell the shards to commit until each has; raises SnapshotError if the disk of the only shard refuses.

        Raises
        ------
        ShardLostError
            If a shard cannot commit after many tries, or the only shard refused the batch but may still have it on
            disk.
        SupersededError
            If another coordinator has begun.
        """
        todo, changes, pause, why = set(calls), {}, PAUSE_S, ""
        for _ in range(TRIES):
            answers = self._call("commit", dict.fromkeys(sorted(todo), (number,)))
            for shard, answer in answers.items():
                if answer is not LOST and answer[0]:
                    changes[shard] = answer[1]
                    todo.discard(shard)
                    continue
                if answer is LOST:
                    self._births.pop(shard, None)
                    self.found_dead(shard)
                elif isinstance(answer[1], SupersededError):
                    raise answer[1]
                else:
                    why = f": {answer[1]}"
                    if len(calls) == 1 and isinstance(answer[1], (SnapshotError, ShardLostError)):
                        raise answer[1]
                self.out_of_step.add(shard)
                if self._redone(shard, number, calls[shard], versions[shard]):
                    todo.discard(shard)
            if not todo:
                return changes
            CLOCK.get().sleep(pause)
            pause = min(2.0 * pause, LONGEST_PAUSE_S)
        raise ShardLostError(f"shard {min(todo)} does not make a batch durable after {TRIES} tries{why}")

    def _redone(self, shard: int, number: int, calls: list[Call], versions: tuple[int, int]) -> bool:
        """Return whether a shard had committed before it died; otherwise prepare the batch there again."""
        hello: Hello = self.ask("hello", {shard: ()})[shard]
        before, after = versions
        if hello.version == after and hello.open_batch < 0:
            return True
        if hello.open_batch != number:
            if hello.version != before:
                raise ShardLostError(
                    f"shard {shard} came back at edit {hello.version}, the coordinator knows of {before} and {after}: "
                    "its directory is not the one that it had"
                )
            self.ask("prepare", {shard: (number, calls)})
        return False

    # A decided batch on disk -----------------------------------------------------------------------------

    def _pending(self) -> str | None:
        directory = self.options.directory
        return None if directory is None else os.path.join(directory, f"{PENDING}{self.turn.term}")

    def _write_down(
        self, number: int, calls: Mapping[int, list[Call]], versions: Mapping[int, tuple[int, int]]
    ) -> None:
        """Decide for a batch by writing it to disk; if the disk refuses, raises SnapshotError and the batch is
        undecided.
        """
        path = self._pending()
        if path is None:
            return
        parts = [(shard, list(versions[shard]), [plain_call(each) for each in calls[shard]]) for shard in calls]
        self._struck_out = False
        try:
            write_atomically(path, BATCH.close(encode((number, parts))))
        except SnapshotError as error:  # the failed write may still have reached the disk
            try:
                self._strike_out()
            except SnapshotError:
                self.give_up("the disk may have a batch of edits, and does not let it be taken back", error)
            raise

    def _strike_out(self) -> None:
        """Remove the batch from the disk; raises SnapshotError if that may have failed."""
        path = self._pending()
        if path is not None:
            try:
                if DISK.get().kind(path) is not None:
                    DISK.get().remove(path)
                sync_folder(Path(path).parent)  # otherwise a loss of power may bring the file back after later edits
            except OSError as error:
                raise SnapshotError(f"{path} cannot be removed: {error.strerror}") from error
        self._struck_out = True

    def finish_pending(self) -> None:
        """Complete the batch that an earlier coordinator had decided for, or undo an undecided one.

        After the first call the shards refuse earlier coordinators, so only then are their decisions read. A batch that
        a single shard refused must be off that shard's disk before the coordinator relies on its state.
        """
        self.every("abort")
        self.every("take_back")
        for path in self.turn.unfinished():
            number, parts = Reader(BATCH.open(read_file(path), "the pending batch"), "the pending batch").whole()
            calls = {shard: [call_from(each) for each in plain] for shard, _, plain in parts}
            versions = {shard: (before, after) for shard, (before, after), _ in parts}
            todo = {shard for shard in calls if not self._redone(shard, number, calls[shard], versions[shard])}
            self._decide(number, {shard: calls[shard] for shard in todo}, versions)
        self.turn.settle()


def result_of(answer: tuple[bool, Any, int]) -> Any:
    """Return the result; raises a shard's error."""
    done, result, _ = answer
    if done:
        return result
    if isinstance(result, CopterError):
        raise result
    raise ShardLostError(f"a shard gave no answer: {result}")
