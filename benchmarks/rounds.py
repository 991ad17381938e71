"""The same sequence of edited LPs through copter and its peers, round by round, in one process.

python benchmarks/rounds.py --family sia --scale 10000 --churn 0.01 --rounds 100 --seed 0 --peers highs --json
"""

from __future__ import annotations

import argparse
import json

import families
import peers
from harness import Options, Run


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--family", choices=[*families.NAMES, "hare", "chronus"], default="sia")
    found.add_argument(
        "--mode",
        choices=["full", "capped"],
        default="full",
        help="of sia: jobs; of hadar, hops: columns; of hare: 40 intervals or 23",
    )
    found.add_argument("--scale", type=int, default=10_000, help="GPUs, or requests (default 10000)")
    found.add_argument("--rows", type=int, help="resources of gub (default 50) and transport (100)")
    found.add_argument(
        "--churn",
        type=float,
        default=0.01,
        help="share of requests replaced a round; of multicommodity, how far every demand moves (default 0.01)",
    )
    found.add_argument("--rounds", type=int, default=20)
    found.add_argument("--seed", type=int, default=0)
    found.add_argument("--threads", type=int, default=0, help="0: all processors")
    found.add_argument("--tolerance", type=float, help="of copter (default 1e-6, of hare 1e-4)")
    found.add_argument("--time-limit", type=float, default=120.0, help="seconds of one solve of copter")
    found.add_argument("--peers", default="", help=f"some of {','.join(peers.NAMES)}; of chronus: highs, highs-milp")
    found.add_argument("--peer-time-limit", type=float, default=120.0, help="seconds of one solve of a peer")
    found.add_argument("--json", action="store_true", help="one object, the last line of stdout")
    found.add_argument("--verbose", action="store_true", help="a line a round on stderr")
    return found


def options_of(command: argparse.ArgumentParser, arguments: argparse.Namespace) -> Options:
    """Checked options; the parser's error for those that make no sense."""
    names = tuple(name for name in arguments.peers.split(",") if name)
    own = ("highs-milp",) if arguments.family == "chronus" else ()
    unknown = [name for name in names if name not in (*peers.NAMES, *own)]
    if unknown:
        command.error(f"unknown peer {unknown[0]!r}: some of {', '.join(peers.NAMES)}")
    least = {"sia": 8 * 7, "hadar": 8 * 7, "hare": 8 * 7, "hops": 8 * 21, "chronus": 32}.get(arguments.family, 10)
    if arguments.rounds < 1 or arguments.scale < least or not 0 <= arguments.churn < 1:
        command.error(f"rounds must be >= 1, scale >= {least} and churn from 0 to below 1")
    if arguments.rows is not None and arguments.rows < 8:
        command.error("rows must be >= 8")
    return Options(
        family=arguments.family,
        scale=arguments.scale,
        churn=arguments.churn,
        rounds=arguments.rounds,
        seed=arguments.seed,
        mode=arguments.mode,
        rows=arguments.rows,
        peers=names,
        peer_time_limit_s=arguments.peer_time_limit,
        threads=arguments.threads,
        tolerance=arguments.tolerance or (1e-4 if arguments.family == "hare" else 1e-6),
        time_limit_s=arguments.time_limit,
        verbose=arguments.verbose,
    )


def main() -> None:
    """Parse, run, print."""
    command = parser()
    arguments = command.parse_args()
    options = options_of(command, arguments)
    if options.family == "hare":
        from families.hare import HareRun

        result = HareRun(options).run()
    elif options.family == "chronus":
        from families.chronus import ChronusRun

        result = ChronusRun(options).run()
    else:
        result = Run(options).run()
    print(json.dumps(result) if arguments.json else json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
