"""Damaged files to every reader, as long as wanted: python -m tests.adversary.fuzz --seconds 3600 [--only MPS].

Every file that a reader does not take as it should is kept in --keep, with what happened; the exit code is 1 then.
With --atheris the mutations are atheris's, steered by coverage (it must be installed), of the one format in --only.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.adversary.mutations import FORMATS, mutated, seeds, verdict

MEMORY = 4 * 2**30


def main() -> int:
    """Run, and print what was tried and held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default=",".join(FORMATS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    parser.add_argument("--atheris", action="store_true")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # a file that takes all memory raises MemoryError here
    names = [name for name in arguments.only.split(",") if name]
    if unknown := set(names) - set(FORMATS):
        parser.error(f"unknown format {sorted(unknown)[0]!r}: some of {', '.join(FORMATS)}")
    with tempfile.TemporaryDirectory() as folder:
        if arguments.atheris:
            return steered(names[0], Path(folder))
        return loop(names, arguments.seconds, arguments.seed, Path(folder), arguments.keep)


def loop(names: list[str], seconds: float, seed: int, folder: Path, keep: Path) -> int:
    """Mutate at random until the time is up."""
    rng, until = random.Random(seed), time.monotonic() + seconds
    tried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    while time.monotonic() < until:
        name = rng.choice(names)
        content = mutated(rng, rng.choice(seeds(name)))
        tried[name] += 1
        fault = verdict(name, content, folder)
        if fault is not None:
            failed[name] += 1
            keep.mkdir(exist_ok=True)
            (keep / f"{name.replace(' ', '-')}-{failed[name]}").write_bytes(content)
            print(f"{name} {failed[name]}: {fault}", flush=True)
    for name in names:
        print(f"{name:<13} tried {tried[name]:>8}  held {tried[name] - failed[name]:>8}")
    return 1 if failed else 0


def steered(name: str, folder: Path) -> int:
    """Let atheris choose the bytes."""
    import atheris  # an optional extra of this script alone

    def one_input(content: bytes) -> None:
        fault = verdict(name, content, folder)
        if fault is not None:
            raise RuntimeError(fault)

    corpus = folder / "corpus"
    corpus.mkdir()
    for at, content in enumerate(seeds(name)):
        (corpus / str(at)).write_bytes(content)
    atheris.Setup([sys.argv[0], str(corpus)], one_input)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
