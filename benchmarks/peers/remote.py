"""A peer in a process of its own: OR-Tools and highspy each bring a HiGHS library and cannot share one."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from memory import peak_rss_mb

from copter_frontends.replay.peers.answer import Answer, Limits
from copter_frontends.replay.program import Floats, Program


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
        self.name = name
        self.ways: tuple[str, ...] = self.receive()

    def receive(self) -> Any:
        """The next answer; RuntimeError when the process has died."""
        try:
            return self.pipe.recv()
        except EOFError:
            self.process.join()
            raise RuntimeError(
                f"the process of peer {self.name!r} ended with exit code {self.process.exitcode}: its error is above "
                "(peers need the extra 'benchmark')"
            ) from None

    def ask(self, verb: str, *arguments: Any) -> Any:
        """Send a message and wait for what comes back."""
        self.pipe.send((verb, *arguments))
        return self.receive()

    def round(self, program: Program, limits: Limits, values: bool) -> tuple[list[Answer], bool]:
        """Hand a round over and solve: the answers (with points if asked), and whether a start is needed."""
        found: tuple[list[Answer], bool] = self.ask("round", program, limits, values)
        return found

    def start_from(self, x: Floats, y: Floats) -> None:
        """Give warm ways a basis at a point that another solver found."""
        self.ask("start_from", x, y)

    def keep(self, ways: tuple[str, ...]) -> None:
        """Drop all other ways."""
        self.ways = self.ask("keep", ways)

    def peak_rss_mb(self) -> float:
        """Peak memory of the peer's process."""
        return float(self.ask("memory"))

    def close(self) -> None:
        """End the process."""
        self.pipe.close()
        self.process.join(10.0)


def serve(name: str, pipe: Connection) -> None:
    """Loop of the peer's process."""
    from peers import make_peer  # here, as only this process may load the peer's library

    peer = make_peer(name)
    pipe.send(peer.ways)
    while True:
        try:
            verb, *arguments = pipe.recv()
        except EOFError:
            return
        if verb == "round":
            program, limits, values = arguments
            answers = peer.round(program, limits)
            pipe.send(([a if values else replace(a, x=None, y=None) for a in answers], peer.needs_start))
        elif verb == "start_from":
            peer.start_from(*arguments)
            pipe.send(None)
        elif verb == "keep":
            peer.keep(*arguments)
            pipe.send(peer.ways)
        else:
            pipe.send(peak_rss_mb())
