"""Runs of ``copter simulate traffic|shards`` and ``copter compare traffic|shards``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from copter import CopterError
from copter.problem.figures import percent, seconds
from copter.storage.tape import recorded
from copter_frontends.cli.habits import is_quiet
from copter_frontends.cli.options import own_tape
from copter_frontends.cli.output import InputError, complain, foreign_prints_on_stderr, print_json
from copter_frontends.shards import ShardCluster, load_rounds, read_column, read_rows, simulate_shards
from copter_frontends.shards import make_scheme as make_shard_scheme
from copter_frontends.shards.cluster import Floats
from copter_frontends.shards.errors import ShardError
from copter_frontends.shards.loads import SEED
from copter_frontends.shards.schemes import check_scheme as check_shard_scheme
from copter_frontends.traffic import make_scheme, simulate_traffic
from copter_frontends.traffic.schemes import check_scheme
from copter_frontends.traffic.simulation import TrafficResult
from copter_frontends.traffic.splits import router_splits, write_splits
from copter_frontends.traffic.workload import TrafficOptions, make_workload

Columns = Sequence[tuple[str, str, str]]
WIDEST = 200  # most characters of a table's line; on a narrower terminal a line is broken, and no figure is cut

TRAFFIC_COLUMNS: Columns = (
    ("objective", "mean_objective", "{:,.6g}"),
    ("flow", "mean_flow", "{:,.6g}"),
    ("satisfied", "satisfied", "{:.2%}"),
    ("least share", "least_share", "{:.2%}"),
    ("fullest link", "max_utilisation", "{:.3f}"),
)
SHOWN_ANYWAY = {"total": "mean_objective", "concurrent": "least_share", "utilisation": "max_utilisation"}
"""For each objective, a column that repeats another one and is left out, so that the table fits 80 characters."""
SHARD_COLUMNS: Columns = (
    ("movements", "movements", "{:,.2f}"),
    ("imbalance", "imbalance", "{:.2%}"),
    ("out of band", "out_of_band_rounds", "{:,}"),
    ("copies", "copies", "{:,.0f}"),
)


def run_traffic(given: Mapping[str, Any]) -> int:
    """Run every scheme on the same stream; returns the exit code."""
    summaries, results = [], []
    tracking = given["stream"] == "tracking"
    seed = given["seed"] if given["seed"] is not None else int(tracking)
    scale = given["scale"] if given["scale"] is not None else (1.0 if given["matrices"] else 64.0)
    options = TrafficOptions(
        given["network"], given["capacity"], given["model"], scale, given["matrix_seed"], given["matrices"],
        given["unit"], given["stream"], given["rounds"], seed, given["rule"], given["most"], given["cache"],
    )  # fmt: skip
    try:
        for name in given["schemes"]:
            check_scheme(name, given["objective"])
        workload = make_workload(options)
    except CopterError as error:
        raise InputError(str(error)) from error
    failed: CopterError | None = None
    try:
        for name in given["schemes"]:
            with foreign_prints_on_stderr():
                scheme = make_scheme(
                    name, workload.paths, workload.first, given["objective"], given["threads"] or 0, seed,
                    given["client_split"],
                )  # fmt: skip
                complain(f"{name}: {given['rounds']} rounds, {workload.paths.n_pairs:,} pairs")
                with taped(given, name):
                    result = simulate_traffic(
                        name, scheme, workload.rounds(), given["objective"], given["warmup_rounds"], given["deadline"],
                        given["interval"], given["carried"],
                    )  # fmt: skip
            results.append(result)
            summaries.append(result.summary())
        if given.get("splits") is not None:
            _write_splits(given, results[0])
    except CopterError as error:  # print the schemes that were solved before the error
        failed = error
    if given["out"] is not None and results:
        from copter_frontends.report.networks import write_traffic_report  # needs matplotlib, an optional extra

        page = write_traffic_report(results, given["out"], facts(given))
        print(f"report: {page}", file=sys.stderr)
    own = SHOWN_ANYWAY.get(given["objective"])
    columns = [each for each in TRAFFIC_COLUMNS if each[1] != own]
    return show(given, summaries, columns, f"{workload.network.name}, {options.stream}", failed)


def run_shards(given: Mapping[str, Any]) -> int:
    """Run every scheme on the same loads; returns the exit code."""
    summaries, results = [], []
    seed = SEED if given["seed"] is None else given["seed"]
    try:
        cluster, measured = _shards_of(given)
        for name in given["schemes"]:
            check_shard_scheme(name, cluster)
    except CopterError as error:
        raise InputError(str(error)) from error
    failed: CopterError | None = None
    try:
        for name in given["schemes"]:
            with foreign_prints_on_stderr():
                scheme = make_shard_scheme(name, cluster, given["threads"] or 0, seed, given["time_limit"])
                rounds = given["rounds"] if measured is None else len(measured)
                complain(f"{name}: {rounds} rounds, {cluster.n_shards:,} shards on {cluster.n_servers:,} servers")
                loads = measured or load_rounds(cluster.n_shards, rounds, given["loads"], seed)
                with taped(given, name):
                    result = simulate_shards(
                        name, scheme, loads, given["warmup_rounds"], given["deadline"], given["lose"], given["back"]
                    )
            results.append(result)
            summaries.append(result.summary())
    except CopterError as error:  # print the schemes that were solved before the error
        failed = error
    if given["out"] is not None and results:
        from copter_frontends.report.networks import write_shard_report  # needs matplotlib, an optional extra

        page = write_shard_report(results, given["out"], facts(given))
        print(f"report: {page}", file=sys.stderr)
    loaded = given["loads"] if measured is None else given["loads_file"]
    return show(given, summaries, SHARD_COLUMNS, f"{given['shards']:,} shards, {loaded}", failed)


def _shards_of(given: Mapping[str, Any]) -> tuple[ShardCluster, list[Floats] | None]:
    """Return the cluster that the options describe, and measured loads, one array per round; raises ShardError."""
    shards, servers, memory = given["shards"], given["servers"], given["memory"]
    if memory is None:
        memory = 16.0 * given["replicas"]
    elif isinstance(memory, str):
        memory = read_column(memory, "memories of servers", servers)
    size = 1.0 if given["sizes"] is None else read_column(given["sizes"], "sizes of shards", shards)
    cluster = ShardCluster.round_robin(
        shards, servers, memory, given["band"], given["replicas"], given["cost"], size
    )  # fmt: skip
    if given["loads_file"] is None:
        measured = None
    else:
        measured = read_rows(given["loads_file"], "loads", shards)
        for at, row in enumerate(measured):
            try:
                cluster.checked_loads(row)
            except ShardError as error:
                raise ShardError(f"{given['loads_file']}, round {at}: {error}") from error
    rounds = given["rounds"] if measured is None else len(measured)
    for option in ("lose", "back"):
        for at in sorted(each for each in given[option] if each >= rounds)[:1]:
            raise ShardError(f"--{option} {at}:{given[option][at]}: the rounds are 0 to {rounds - 1}")
    return cluster, measured


def taped(given: Mapping[str, Any], name: str) -> AbstractContextManager[object]:
    """Record a scheme's rounds if asked to; several schemes get separate tapes."""
    if given["tape"] is None:
        return nullcontext()
    return recorded(given["tape"] if len(given["schemes"]) == 1 else own_tape(given["tape"], name))


def facts(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that were given, by name, for a report."""
    own = {name: value for name, value in given.items() if value is not None and name not in ("out", "as_json")}
    return {"Command": shlex.join(["copter", *sys.argv[1:]])} | {
        name.replace("_", " ").capitalize(): ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        for name, value in own.items()
    }


def _write_splits(given: Mapping[str, Any], result: TrafficResult) -> None:
    """Write the last round's flows as integer path weights, as routers use them."""
    if result.last is None:
        return
    splits = router_splits(result.paths, result.last.flows, result.capacity, given["buckets"])
    try:
        write_splits(result.paths, splits, given["splits"])
    except OSError as error:
        raise InputError(f"--splits {given['splits']}: cannot be written: {error.strerror or error}") from error
    kept = splits.flows.sum() / result.last.total if result.last.total > 0.0 else 1.0
    complain(f"{given['splits']}: weights of {given['buckets']} buckets a pair carry {kept:.2%} of the flow")


def show(
    given: Mapping[str, Any], summaries: list[dict[str, Any]], columns: Columns, title: str, failed: CopterError | None
) -> int:
    """Print the results of all schemes; then raise InputError if one of them failed."""
    if summaries and given["as_json"]:
        print_json(summaries[0] if len(given["schemes"]) == 1 else {"schemes": summaries})
    elif summaries:
        names = ["scheme", *(each[0] for each in columns), "largest gap", "round p50", "round max"]
        rows = []
        for each in summaries:
            gap = "none" if each["gap"] is None else percent(each["gap"]["max"])
            cells = ["none" if each[key] is None else form.format(each[key]) for _, key, form in columns]
            rows.append([each["scheme"], *cells, gap, seconds(each["round_s"]["p50"]), seconds(each["round_s"]["max"])])
        table, console = _narrow(names, rows, title), Console(quiet=is_quiet())
        whole = console.measure(table, options=console.options.update(width=WIDEST)).maximum
        Console(quiet=is_quiet(), width=max(console.width, whole)).print(table)
    if failed is not None:
        raise InputError(str(failed)) from failed
    return 0


def _narrow(names: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> Table:
    """Return a table whose headings wrap but whose cells do not, to fit 80 characters."""
    table = Table(
        box=box.SIMPLE_HEAD, title=title, title_justify="left", padding=(0, 1, 0, 0), pad_edge=False, show_edge=False
    )
    for at, name in enumerate(names):
        table.add_column(name.replace(" ", "\n"), justify="right" if at else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
