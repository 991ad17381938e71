"""A peer in a process of its own: OR-Tools and highspy each bring a HiGHS library and cannot share one."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from families.protocol import At, Family, Floats, Ints
from judge import Point
from memory import peak_rss_mb

from peers.program import Answer


@dataclass(frozen=True, slots=True)
class View:
    """A round of a family as arrays, all that a peer needs."""

    columns: int
    shared_pattern: bool
    requests: Ints
    limits: Floats
    capacity: Floats
    cost: Floats
    row: Ints
    coefficient: Floats

    @classmethod
    def of(cls, family: Family) -> View:
        """The family as it is now."""
        everything = slice(0, len(family.requests))
        return cls(
            family.columns,
            family.shared_pattern,
            family.requests,
            family.limits,
            family.capacity,
            family.costs(everything),
            *family.pattern(everything),
        )

    def costs(self, at: At) -> Floats:
        """As a family's."""
        return self.cost[at]

    def pattern(self, at: At) -> tuple[Ints, Floats]:
        """As a family's."""
        return (self.row, self.coefficient) if self.shared_pattern else (self.row[at], self.coefficient[at])


class RemotePeer:
    """A peer behind a pipe; what goes through the pipe is not timed, and it rests while another solver runs.

    Parameters
    ----------
    name : str
        As for :func:`peers.make_peer`.
    """

    def __init__(self, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(name, other), daemon=True)
        self.process.start()
        other.close()
        self.name, self.can_be_helped = self.receive()

    def receive(self) -> tuple[object, ...]:
        """The next answer; RuntimeError when the process has died."""
        try:
            found: tuple[object, ...] = self.pipe.recv()
        except EOFError:
            self.process.join()
            raise RuntimeError(
                f"the process of a peer ended with exit code {self.process.exitcode}: its error is above "
                "(peers need the extra 'benchmark')"
            ) from None
        return found

    def round(self, family: Family, time_limit_s: float, values: bool) -> tuple[float, Answer]:
        """Hand a round's edits over and solve: seconds of the hand-over, and the answer (with values if asked)."""
        self.pipe.send(("round", View.of(family), time_limit_s, values))
        return self.receive()  # type: ignore[return-value]

    def start_from(self, point: Point, time_limit_s: float) -> Answer:
        """Solve the last round again from a point that another solver found."""
        self.pipe.send(("start_from", point, time_limit_s))
        return self.receive()[0]  # type: ignore[return-value]

    def peak_rss_mb(self) -> float:
        """Peak memory of the peer's process."""
        self.pipe.send(("memory",))
        return float(self.receive()[0])  # type: ignore[arg-type]

    def close(self) -> None:
        """End the process."""
        self.pipe.close()
        self.process.join(10.0)


def serve(name: str, pipe: Connection) -> None:
    """Loop of the peer's process."""
    from peers import make_peer

    peer, view = make_peer(name), None
    pipe.send((peer.name, peer.name == "highs_warm"))
    while True:
        try:
            verb, *arguments = pipe.recv()
        except EOFError:
            return
        if verb == "round":
            view, time_limit_s, values = arguments
            edit_s = peer.update(view)
            answer = peer.solve(time_limit_s)
            pipe.send((edit_s, answer if values else replace(answer, x=None, price=None)))
        elif verb == "start_from":
            point, time_limit_s = arguments
            peer.start_from(view, point)  # type: ignore[attr-defined]
            pipe.send((replace(peer.solve(time_limit_s), x=None, price=None),))
        else:
            pipe.send((peak_rss_mb(),))
