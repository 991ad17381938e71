"""Make the pictures of README and of the pages, each one SVG for light and for dark pages.

    python benchmarks/make_pictures.py                     # `make pictures`: all of them, some minutes
    python benchmarks/make_pictures.py --only day,prices   # of these only
    python benchmarks/make_pictures.py --again             # runs anew what is kept in build/pictures, too
    python benchmarks/make_pictures.py --list

The pictures of README are of a run of `make demo`, which is recorded; that of docs/measured.md is drawn from the page.
The others are of runs with a seed: the same code draws the same picture.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pictures import day, first_screen, measured, price_map, recording, terminal, thesis, working_set

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
TABLES = ROOT / "docs" / "results" / "tables"
KEPT = ROOT / "build" / "pictures"
"""Runs that pictures are drawn from."""
DEMO = ("make", "--no-print-directory", "--silent", "demo", "TRACE=")
"""The demo on the jobs that everybody has: without a trace."""
DAY = ("simulate", "hadar", "--gpus", "1000", "--hours", "24", "--jobs", "12000", "--seed", "1", "--threads", "1")
WORKING_GPUS, WORKING_ROUNDS = 10_000, 40
NETWORK, TRAFFIC_ROUNDS, SCALE = "random-30", 10, 300.0


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: its name, the file, the page that shows it, what it shows, and how its SVG is made."""

    name: str
    file: Path
    page: Path
    alt: str
    make: Callable[[], str]


def demo_recording() -> Path:
    """The recording of `make demo`, made if it is not there; the report is beside it."""
    path = KEPT / "demo.cast"
    if not path.exists():
        recording.record(DEMO, path, ROOT)
        shutil.copytree(ROOT / "demo-report", KEPT / "demo-report", dirs_exist_ok=True)
    return path


def demo_report() -> str:
    """The page that the recorded demo wrote."""
    return (demo_recording().parent / "demo-report" / "report.html").read_text(encoding="utf-8")


def day_folder() -> Path:
    """What a day of Hadar wrote, simulated if it is not there."""
    folder = KEPT / "day"
    if not (folder / "rounds.parquet").exists():
        command = [sys.executable, "-m", "copter_frontends.cli", *DAY, "--json", "--out", str(folder)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return folder


MADE = (
    Picture(
        "demo",
        PICTURES / "demo.svg",
        ROOT / "README.md",
        "make demo, running",
        lambda: terminal.picture("make demo", recording.frames(demo_recording())),
    ),
    Picture(
        "report",
        PICTURES / "report.svg",
        ROOT / "README.md",
        "The demo's report",
        lambda: first_screen.picture(demo_report()),
    ),
    Picture(
        "measured",
        ROOT / "docs" / measured.NAME,
        ROOT / "docs" / "measured.md",
        measured.ALT,
        lambda: measured.picture((ROOT / "docs" / "measured.md").read_text()),
    ),
    Picture(
        "day",
        PICTURES / "day.svg",
        ROOT / "docs" / "reference" / "simulator.md",
        "A day of Hadar on 1,000 GPUs: GPUs held by type, jobs running and queued, price of a GPU of each type, gap",
        lambda: day.picture(day_folder()),
    ),
    Picture(
        "working-set",
        PICTURES / "working_set.svg",
        ROOT / "docs" / "method" / "algorithm.md",
        "Columns of Sia's LP on 10,000 GPUs over 40 rounds: all, the working set, and those not zero at the optimum",
        lambda: working_set.picture(working_set.counted(WORKING_GPUS, WORKING_ROUNDS)),
    ),
    Picture(
        "prices",
        PICTURES / "prices.svg",
        ROOT / "docs" / "method" / "traffic.md",
        "The network random-30 with its links coloured by price, from free to the dearest",
        lambda: price_map.picture(price_map.run(NETWORK, TRAFFIC_ROUNDS, SCALE)),
    ),
    Picture(
        "sia-figures",
        PICTURES / "sia_figures.svg",
        ROOT / "docs" / "papers" / "copter.md",
        "The thesis's Figures 3.1, 3.6, 3.7, 3.9, 3.10 and 3.5.3's throughput, as measured here",
        lambda: thesis.figures(TABLES),
    ),
    Picture(
        "sia-timelines",
        PICTURES / "sia_timelines.svg",
        ROOT / "docs" / "papers" / "copter.md",
        "The thesis's Figures 3.4, 3.8 and 3.5.3's job over time, as measured here",
        lambda: thesis.timelines(TABLES),
    ),
)


def main() -> int:
    """Do what is asked; 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="names of pictures, separated by commas")
    parser.add_argument("--again", action="store_true", help="run anew what pictures are drawn from")
    parser.add_argument("--list", action="store_true", help="say which there are, and make none")
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if name]
    if unknown := set(names) - {picture.name for picture in MADE}:
        parser.error(f"unknown picture {sorted(unknown)[0]!r}; --list says which there are")
    chosen = [picture for picture in MADE if not names or picture.name in names]
    if given.again and not given.list:
        kept = {"demo": ("demo.cast", "demo-report"), "report": ("demo.cast", "demo-report"), "day": ("day",)}
        for each in {KEPT / part for picture in chosen for part in kept.get(picture.name, ())}:
            shutil.rmtree(each) if each.is_dir() else each.unlink(missing_ok=True)
    for picture in chosen:
        where = f"{picture.file.relative_to(ROOT)}, on {picture.page.relative_to(ROOT)}"
        if not given.list:
            picture.file.parent.mkdir(parents=True, exist_ok=True)
            picture.file.write_text(picture.make())
            where += f", {picture.file.stat().st_size / 1000:.0f} kB"
        print(f"{picture.name}: {where}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
