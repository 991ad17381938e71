"""Counts of the traffic between the coordinator and its shards."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Traffic:
    """Number of messages (calls and replies) and their bytes.

    Attributes
    ----------
    messages : int
    sent, received : int
        Bytes sent by the coordinator and received by it.
    passes : int
        Pricing passes: prices sent, bounds and columns received.
    """

    messages: int = 0
    sent: int = 0
    received: int = 0
    passes: int = 0

    def __sub__(self, before: Traffic) -> Traffic:
        """Return the counts since an earlier count."""
        return Traffic(
            self.messages - before.messages,
            self.sent - before.sent,
            self.received - before.received,
            self.passes - before.passes,
        )

    def copy(self) -> Traffic:
        """Return the current counts."""
        return Traffic(self.messages, self.sent, self.received, self.passes)
