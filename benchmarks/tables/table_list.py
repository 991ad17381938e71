"""The papers' tables: the command of each, its seeds, and the small workload on which its answer is probed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
DRAWS = "of the workloads"

HADAR = "--jobs 12 --seeds 1 --scale 0.05"
HOPS = "--jobs 12 --seeds 1 --scale 0.05"
SIA = "--workloads 1 --jobs 8"
COPTER = "--gpus 448 --hours 0.2 --seeds 1"
NOT_KEPT = "--keep="
CHRONUS = "--share 0.05 --days 0.1 --seeds 1"
PROBES = {
    "chronus_density.py": f"{CHRONUS} --densities 1.2",
    "chronus_lease_length.py": f"{CHRONUS} --minutes 20",
    "chronus_mixes.py": f"{CHRONUS} --mixes mix2",
    "chronus_noise.py": f"{CHRONUS} --noises 0.4",
    "chronus_placement.py": f"{CHRONUS} --hostile-shares 0.4",
    "chronus_profiler.py": f"{CHRONUS} --sizes 1",
    "chronus_profiler_reasons.py": f"{CHRONUS} --cases 0",
    "chronus_promises.py": "--days 0.3 --seeds 1 --densities 1.2",
    "chronus_prototype.py": CHRONUS,
    "chronus_selector.py": f"{CHRONUS} --mixes mix2",
    "copter_building.py": COPTER,
    "copter_figure_4_6.py": COPTER,
    "copter_figures.py": COPTER,
    "copter_table_4_1.py": f"{COPTER} {NOT_KEPT}",
    "finish_time_fairness.py": SIA,
    "gavel_reference.py": "--only philly_5",
    "hadar_changes.py": HADAR,
    "hadar_fairness_makespan.py": HADAR,
    "hadar_figures.py": "--jobs 8 --seeds 1 --rounds 1",
    "hadar_jct.py": HADAR,
    "hadar_packing.py": HADAR,
    "hadar_prices.py": HADAR,
    "hadar_reasons.py": HADAR,
    "hadar_round_length.py": f"{HADAR} --rates 6",
    "hadar_table3.py": "--jobs 6 --seeds 1",
    "hare_jct_cdf.py": "--seeds 1",
    "hare_motivation.py": "--seeds 1",
    "hare_ratio.py": "--seeds 1 --max-tasks 20000 --paper-tasks 4000",
    "hare_order.py": "--seeds 1",
    "hare_reasons.py": "--seeds 1",
    "hare_switching.py": "--max-tasks 2000",
    "hare_weighted_jct.py": "--seeds 1",
    "hops_estimator.py": "--seeds 1",
    "hops_figures.py": f"{HOPS} --samples 1 --hours 0.2 --times 1",
    "hops_sweeps.py": HOPS,
    "hops_table3.py": HOPS,
    "hops_table4.py": HOPS,
    "rigid_only.py": SIA,
    "shards_figures.py": "--rounds 2 --schemes copter,lp-relaxed,greedy --time-limit 5",
    "sia_curves.py": "--workloads 1 --jobs 24 --policies sia,gavel",
    "sia_figures.py": f"{SIA} --policies sia,gavel --hours 0.25",
    "sia_reference.py": "--only philly_5",
    "sia_types.py": "--workloads 1 --jobs 6 --types 3,4",
    "sweeps.py": SIA,
    "table_3_3.py": f"{SIA} --traces philly",
    "table_3_4.py": SIA,
    "time_sharing.py": "--workloads 1 --burst 10",
    "traffic_figures.py": "--network asn-30 --rounds 1 --warmup 0 --schemes copter,pop-4",
}
"""Options after a table's own that make its script's run a matter of seconds; the last of an option twice counts."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, the command that makes it, its seeds, and the reason where they are fewer than five."""

    name: str
    command: str
    seed: str = "0 to 4"
    few: str = ""

    @property
    def script(self) -> str:
        """The script of its command."""
        return self.command.split()[0]

    @property
    def draws(self) -> int:
        """How many seeds or public workloads it is made with."""
        if self.seed == DRAWS:
            given = self.command.split()
            return int(given[given.index("--workloads") + 1]) if "--workloads" in given else 1
        first, _, last = self.seed.partition(" to ")
        return int(last) - int(first) + 1 if last else len(self.seed.split(","))

    @property
    def words(self) -> list[str]:
        """Its command by words, the script by its path."""
        return [str(HERE / self.script), *self.command.split()[1:]]

    @property
    def probe(self) -> list[str]:
        """The command of its probe by words."""
        return [*self.command.split(), *PROBES[self.script].split()]


KEPT = "docs/results/tables/kept"
"""Where figures of runs that take hours are kept, each with its date and commit; one to be made again is taken out."""
METHODS = "copter,copter-prices,copter-newton,copter-basis,copter-rounded"
TRIO = "--policies sia,pollux,gavel"
PROFILED = "hops,hops-profiling,hops-profiling-each"
SMALL = "--cluster hops-64 --jobs 120 --jobs-per-hour 60 --scale 0.3"
PUBLIC = "three workloads of this trace are public"
ONE_RUN = "the figure is the course of one run"
A_ROW_EACH = "every public result is a row"
OVER_ROUNDS = "the figures are over the rounds of one stream"
ON_KDL = "copter,lp-top,pop-64,greedy"
"""Without DeDe, whose first round there takes minutes or hours: kept/ has one of each figure."""
ALL_MODES = "hadar,hadar-online,hadar-printed,hadar-horizon,gavel,tiresias,yarn"
LEARNING = "hadar,hadar-measured,hadar-blurred,hadar-misled,gavel,gavel-misled"
TABLES = [
    Table("hadar_jct_static", f"hadar_jct.py --jobs 120 --scale 0.25 --seeds 5 --schedulers {ALL_MODES}"),
    Table(
        "hadar_jct_continuous",
        "hadar_jct.py --arrivals continuous --jobs-per-hour 1.5 --seeds 5 --schedulers hadar,gavel,tiresias,yarn",
    ),
    Table(
        "hadar_jct_arrivals",
        "hadar_jct.py --arrivals continuous --jobs-per-hour 68.6 --seeds 5 --schedulers hadar,gavel,tiresias,yarn",
    ),
    Table("hadar_reasons", "hadar_reasons.py --jobs 120 --scale 0.5 --seeds 5"),
    Table("hadar_reasons_480", "hadar_reasons.py --jobs 480 --scale 0.25 --cases 0,5,6,7 --seeds 5"),
    Table("hadar_jct_480", "hadar_jct.py --seeds 5 --schedulers hadar,gavel,tiresias,yarn"),
    Table("hadar_prices", "hadar_prices.py --jobs 40 --scale 0.1 --seeds 5"),
    Table(
        "hadar_jct_philly",
        "hadar_jct.py --seeds 5 --sizes philly --schedulers hadar,gavel,tiresias,yarn",
    ),
    Table("hadar_learning", f"hadar_jct.py --jobs 60 --scale 0.25 --seeds 5 --schedulers {LEARNING}"),
    Table("hadar_fairness_makespan", "hadar_fairness_makespan.py --seeds 5"),
    Table(
        "hadar_horizon",
        "hadar_fairness_makespan.py --jobs 240 --scale 0.25 --seeds 5 --schedulers hadar,hadar-horizon,gavel",
    ),
    Table("hadar_packing", "hadar_packing.py --jobs 120 --scale 0.25 --seeds 5"),
    Table("hadar_changes", "hadar_changes.py --jobs 60 --scale 0.25 --seeds 5"),
    Table("hadar_figure_3", "hadar_figures.py 3 --jobs 60 --seeds 5"),
    Table("hadar_figure_4", "hadar_figures.py 4 --jobs 60 --seeds 5"),
    Table("hadar_figure_7", "hadar_figures.py 7 --rounds 2 --seeds 5 --schedulers hadar,gavel"),
    Table("hadar_figure_9", "hadar_round_length.py --jobs 120 --scale 0.25 --rates 4,6,8 --seeds 5"),
    Table("hadar_figure_8", "hadar_figures.py 8 --jobs 40 --seeds 5 --schedulers hadar,gavel,tiresias"),
    Table("hadar_table3", "hadar_table3.py --seeds 10", "0 to 9"),
    Table("hadar_figure_10", "hadar_figures.py 10 --scale 0.1 --seeds 5"),
    Table("hadar_restarts", "hadar_figures.py IV --jobs 60 --seeds 5"),
    Table("hops_table3", "hops_table3.py --seeds 10", "0 to 9"),
    Table("hops_table4", "hops_table4.py --seeds 5"),
    Table("hops_profiling", f"hops_table3.py --seeds 5 --schedulers {PROFILED}"),
    Table("hops_figure_6", "hops_estimator.py --seeds 5"),
    Table("hops_figure_7b", "hops_figures.py 7b --seeds 10", "0 to 9"),
    Table("hops_figures_9_11", "hops_figures.py curves --seeds 5"),
    Table("hops_figure_12", "hops_figures.py 12 --jobs 60 --seeds 5"),
    Table("hops_figure_14", "hops_figures.py 14 --seeds 5 --samples 10"),
    Table("hops_figure_15", "hops_figures.py 15 --seeds 5 --times 2,4,8,16"),
    Table("hops_queues", f"hops_sweeps.py --sweep priorities {SMALL} --seeds 5"),
    Table("hops_lambda", f"hops_sweeps.py --sweep fairness {SMALL} --jobs 60 --seeds 5"),
    Table("hops_arrivals", f"hops_sweeps.py --sweep arrivals --rates 30,100,300 {SMALL} --jobs 60 --seeds 5"),
    Table("hops_fragments", f"hops_sweeps.py --sweep fragments {SMALL} --seeds 5"),
    Table(
        "hops_assumptions",
        "hops_sweeps.py --sweep assumptions --cluster hops-64 --jobs 25 --jobs-per-hour 10 --seeds 10",
        "0 to 9",
    ),
    Table("table_3_3", "table_3_3.py --policies sia,pollux,gavel --workloads 5", DRAWS),
    Table("table_3_4", "table_3_4.py --policies sia,themis,gavel,gavel-finish-time-fairness --workloads 5", DRAWS),
    Table(
        "table_3_4_slow",
        "table_3_4.py --policies sia,pollux,shockwave --workloads 1",
        DRAWS,
        few="Pollux and Shockwave take three minutes a workload",
    ),
    Table("table_3_3_thesis", "table_3_3.py --policies sia,gavel --workloads 5 --semantics thesis", DRAWS),
    Table(
        "table_3_4_thesis",
        "table_3_4.py --policies sia,gavel,gavel-finish-time-fairness --workloads 5 --semantics thesis",
        DRAWS,
    ),
    Table("fairness_thesis", "finish_time_fairness.py --policies sia,gavel --workloads 5 --semantics thesis", DRAWS),
    Table(
        "fairness_gavel",
        "finish_time_fairness.py --policies gavel,gavel-max-min-fairness,gavel-proportional-fairness --workloads 5",
        DRAWS,
    ),
    Table("fairness", "finish_time_fairness.py --policies sia,gavel --workloads 5", DRAWS),
    *(
        Table(f"sweep_{name}", f"sweeps.py {name} --workloads 5", DRAWS)
        for name in ("p", "round", "adaptivity", "profiling")
    ),
    Table("sweep_profiling_40", "sweeps.py profiling --workloads 5 --jobs 40", DRAWS),
    Table("rigid_only", "rigid_only.py --workloads 5", DRAWS),
    Table("time_sharing", "time_sharing.py --workloads 3 --restart-s 30", DRAWS, few=PUBLIC),
    Table("time_sharing_measured_starts", "time_sharing.py --workloads 3", DRAWS, few=PUBLIC),
    Table(
        "time_sharing_published",
        "time_sharing.py --workloads 3 --restart-s 30 --window-s 180 --penalty published",
        DRAWS,
        few=PUBLIC,
    ),
    Table(
        "time_sharing_burst",
        "time_sharing.py --workloads 3 --restart-s 30 --window-s 180 --burst 160",
        DRAWS,
        few=PUBLIC,
    ),
    Table("sia_reference", "sia_reference.py", DRAWS, few=A_ROW_EACH),
    Table("sia_reference_own_shim", "sia_reference.py --own-shim", DRAWS, few=A_ROW_EACH),
    Table("gavel_reference", "gavel_reference.py", DRAWS, few=A_ROW_EACH),
    Table("sia_figure_3_3", "sia_figures.py 3.3 --policies sia,gavel --workloads 5", DRAWS),
    Table("sia_figure_3_5", "sia_figures.py 3.5 --policies sia,gavel --workloads 5 --jobs 80", DRAWS),
    Table(
        "sia_figure_3_1",
        f"sia_curves.py 3.1 {TRIO} --workloads 2 --json",
        DRAWS,
        few="Pollux takes five minutes a workload",
    ),
    Table("sia_figure_3_2", "sia_curves.py 3.2 --workloads 5", DRAWS),
    Table("sia_types", "sia_types.py --workloads 5 --jobs 40", DRAWS),
    Table("sia_figure_3_4", "sia_curves.py 3.4 --json", DRAWS, few=ONE_RUN),
    Table("sia_figure_3_6", f"sia_figures.py 3.6 {TRIO} --points 10,30,50 --workloads 3 --json", DRAWS, few=PUBLIC),
    Table("sia_figure_3_7", f"sia_curves.py 3.7 {TRIO} --workloads 5 --json", DRAWS),
    Table("sia_figure_3_7_shockwave", "sia_curves.py 3.7 --policies shockwave --workloads 5 --json", DRAWS),
    Table("sia_figure_3_8", "sia_curves.py 3.8 --workloads 3 --json", DRAWS, few=PUBLIC),
    Table("sia_figure_3_9", "sia_curves.py 3.9 --workloads 3 --json", DRAWS, few=PUBLIC),
    Table("sia_gpt", "sia_curves.py gpt --json", DRAWS, few=ONE_RUN),
    Table(
        "sia_figure_3_10",
        f"sia_figures.py 3.10 {TRIO} --points 1,2,4,8,16,32 --hours 0.25 --json",
        DRAWS,
        few="times of plans; of the largest sizes one workload each is public",
    ),
    Table("sia_figure_3_12", "sia_figures.py 3.12 --points 0,0.5,1 --jobs 60 --workloads 5", DRAWS),
    Table("copter_figure_4_1", "copter_figures.py 4.1 --gpus 1792 --hours 0.25 --seeds 5"),
    Table("copter_figure_4_2", "copter_figures.py 4.2 --gpus 2500 --hours 1 --seeds 5"),
    Table("copter_figure_4_6", "copter_figure_4_6.py --gpus 10000 --hours 0.4 --seeds 5"),
    Table(
        "copter_figure_4_5",
        "copter_figures.py 4.5 --gpus 1792 --hours 0.25 --seeds 5 --policies lp-star,copter,pop-copter --parts 4,16",
    ),
    *(
        Table(
            f"table_4_1_latency_{times}",
            "copter_table_4_1.py --gpus 2500 --hours 0.25 --threads 1 --seeds 5 --policies copter,lp-star "
            f"--plan-latency {times}",
        )
        for times in (0, 1, 50)
    ),
    *(
        Table(
            f"table_4_1_day_{gpus}",
            f"copter_table_4_1.py --gpus {gpus} --hours 24 --threads 1 --policies {policies} "
            f"--keep {KEPT}/table_4_1_day.jsonl --save-every 100",
            "0",
            "a day of 40,000 jobs takes half an hour under POP",
        )
        for gpus, policies in ((10000, "copter,pop-copter"),)
    ),
    Table(
        "table_4_1_quarter",
        "copter_table_4_1.py --gpus 10000 --hours 0.25 --threads 1 --seeds 5 --policies copter,lp-star,pop-copter",
    ),
    Table(
        "table_4_1_quarter_25000",
        "copter_table_4_1.py --gpus 25000 --hours 0.25 --threads 1 --seeds 5 --policies copter,lp-star",
    ),
    Table(
        "table_4_1_exact",
        "copter_table_4_1.py --gpus 448 --hours 0.5 --threads 1 --seeds 5 --parts 8 --time-limit-s 60 "
        "--policies copter,lp-star,milp,pop,pop-copter",
    ),
    Table("copter_building", "copter_building.py --gpus 10000 --hours 0.5 --seeds 5"),
    Table(
        "table_4_1_methods", f"copter_table_4_1.py --gpus 10000 --hours 1 --threads 1 --seeds 5 --policies {METHODS}"
    ),
    Table("copter_figure_4_5_methods", f"copter_figures.py 4.5 --gpus 10000 --hours 1 --seeds 5 --policies {METHODS}"),
    Table(
        "table_4_1_learned_1344",
        "copter_table_4_1.py --gpus 1344 --hours 0.5 --learned --seeds 5 --policies copter,lp-star --threads 1",
    ),
    Table(
        "table_4_1_learned",
        "copter_table_4_1.py --gpus 448 --hours 1 --learned --seeds 5 --policies copter,lp-star,pop-copter --parts 8 "
        "--threads 1",
    ),
    Table(
        "chronus_promises",
        "chronus_promises.py --days 10 --seeds 3",
        "0, 1, 2",
        few="ten days take four minutes; what counts is whether any promise is broken",
    ),
    Table("chronus_profiler_reasons", "chronus_profiler_reasons.py --days 0.5 --seeds 5"),
    Table("chronus_figure_6a", "chronus_profiler.py --share 0.25 --days 0.5 --sizes 1,4,0 --seeds 5"),
    Table("chronus_figure_9", "chronus_mixes.py --share 0.1 --days 3 --seeds 5"),
    Table("chronus_figure_9_helios", "chronus_mixes.py --trace helios --share 0.1 --days 3 --mixes mix2 --seeds 5"),
    Table("chronus_density", "chronus_density.py --share 0.05 --days 2 --seeds 5"),
    Table("chronus_noise", "chronus_noise.py --share 0.05 --days 2 --seeds 5"),
    Table("chronus_lease_length", "chronus_lease_length.py --share 0.05 --days 2 --seeds 5"),
    Table("chronus_selector", "chronus_selector.py --share 0.05 --nodes 80 --days 1 --seeds 5"),
    Table("chronus_placement", "chronus_placement.py --share 0.1 --days 2 --hostile-shares 0.05,0.4 --seeds 5"),
    Table("chronus_prototype", "chronus_prototype.py --seeds 5"),
    Table("hare_figures_12_13", "hare_jct_cdf.py --seeds 10 --online", "0 to 9"),
    *(
        Table(f"hare_{what}", f"hare_weighted_jct.py --vary {what} --seeds 5")
        for what in ("jobs", "network", "batch", "mix")
    ),
    Table("hare_heterogeneity", "hare_weighted_jct.py --vary heterogeneity --seeds 10", "0 to 9"),
    Table("hare_gpus", "hare_weighted_jct.py --vary gpus --seeds 5 --online"),
    Table("hare_switching", "hare_switching.py", "0", few="the figures are over thousands of switches"),
    Table("hare_ratio", "hare_ratio.py --seeds 5"),
    Table("hare_order", "hare_order.py --seeds 10", "0 to 9"),
    Table("hare_reasons", "hare_reasons.py --seeds 5"),
    Table("hare_motivation", "hare_motivation.py", "none", few="nothing is drawn"),
    Table("shards_figure_5_2", "shards_figures.py --figure 5.2 --rounds 100 --budget 60", "0", few=OVER_ROUNDS),
    Table("shards_figure_5_3", "shards_figures.py --figure 5.3 --rounds 100 --budget 60", "0", few=OVER_ROUNDS),
    Table(
        "shards_exact",
        "shards_figures.py --figure 5.2 --rounds 1 --time-limit 600 --schemes exact,lp-relaxed,copter,dede",
        "0",
        few=OVER_ROUNDS,
    ),
    *(
        Table(
            f"traffic_figure_{figure.replace('.', '_')}{name}",
            f"traffic_figures.py --figure {figure} {given}",
            "0",
            OVER_ROUNDS,
        )
        for figure in ("5.5", "5.6")
        for name, given in (
            ("", "--network GtsCe --rounds 20 --warmup 5"),
            ("_asn", "--network asn-200 --rounds 20 --warmup 5"),
            ("_kdl", f"--network Kdl --scale 16 --rounds 20 --warmup 1 --budget 120 --schemes {ON_KDL}"),
        )
    ),
]
