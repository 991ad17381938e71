"""What the commands that make papers' figures share: their options, the spread over seeds, and how they end."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import loads
import numpy as np

Figures = dict[str, Any]


def figure_options(doc: str | None, figures: Collection[str], counted: str = "seeds") -> argparse.ArgumentParser:
    """A command for one of some figures, averaged over so many seeds (or whatever is counted)."""
    command = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("figure", choices=list(figures))
    command.add_argument(f"--{counted}", type=whole, default=1, help="to average over, the first so many (default 1)")
    if counted == "seeds":
        command.add_argument("--seed", type=int, default=0, help="the first (default 0)")
    command.add_argument("--json", action="store_true", help="the figure's points as one object, the last line")
    return command


def whole(text: str) -> int:
    """A whole number from 1 on, as an option has it."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def names_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """Reads some of the known names, separated by commas."""

    def read(text: str) -> list[str]:
        found = [name for name in text.split(",") if name]
        if not found or any(name not in known for name in found):
            raise argparse.ArgumentTypeError(f"{text!r} is not some of {','.join(known)}")
        return found

    return read


def spread(values: Sequence[float], unit: str = "") -> str:
    """Mean, and least to most where there are several."""
    text = f"{np.mean(values):.3g}{unit}"
    return text if len(values) == 1 else f"{text} ({min(values):.3g} to {max(values):.3g})"


def end_figure(asked: argparse.Namespace, found: Any, paper: Mapping[str, str]) -> None:
    """Print the workloads' load, the paper's claim, and the points where they are asked for."""
    loads.say()
    print(f"\nThe paper: {paper[asked.figure]}.")
    if asked.json:
        print(json.dumps(found))


def seeds_of(asked: argparse.Namespace) -> range:
    """The seeds that a command line asks for."""
    return range(asked.seed, asked.seed + asked.seeds)
