"""The code cites only equations that the documents number, and the stubs name only what the extensions have."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import copter

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "copter").is_dir(), reason="looks at the checkout's own files")
STUBS = sorted((ROOT / "copter").rglob("*.pyi"))


# Letter of a page's equations -> the page, how many there are, and the code that cites them.
PAGES = {
    "F": ("method/formulation.md", 12, "*.py*"),
    "A": ("method/algorithm.md", 18, "*.py*"),
    "P": ("method/presolve.md", 14, "methods/presolve/*.py"),
    "I": ("method/interior.md", 15, "methods/interior/*.py*"),
    "M": ("method/integer.md", 16, "methods/integer/*.py*"),
    "K": ("method/blocks.md", 18, "methods/blocks/*.py*"),
    "D": ("method/simplex.md", 12, "methods/simplex/*.py*"),
    "R": ("method/distributed.md", 8, "../frontends/copter_distributed/**/*.py"),
}


# The same of a frontend: the page, how many there are, and the files or folders whose code cites all of them.
POLICIES, OPPONENTS = "copter_frontends/policies", "copter_papers/opponents"
FRONTEND_PAGES = {
    "C": (
        "papers/chronus.md",
        25,
        (
            f"{POLICIES}/chronus",
            "copter_papers/chronus",
            f"{OPPONENTS}/three_sigma.py",
            f"{OPPONENTS}/genie.py",
            "copter_frontends/policy_kit/deadlines",
            "copter_frontends/policy_kit/training_throughputs.py",
        ),
    ),
    "B": (
        "papers/baselines.md",
        46,
        (
            f"{POLICIES}/baselines",
            OPPONENTS,
            "copter_frontends/policy_kit",
            f"{POLICIES}/registry",
            "copter_papers/sia/cold_highs.py",
            "copter_frontends/simulator",
        ),
    ),
    "H": ("papers/hadar.md", 21, (f"{POLICIES}/hadar", "copter_papers/hadar")),
    "HP": ("papers/hops.md", 28, (f"{POLICIES}/hops", "copter_papers/hops")),
    "HR": ("papers/hare.md", 35, (f"{POLICIES}/hare", "copter_papers/hare")),
    "S": ("papers/sia.md", 13, (f"{POLICIES}/sia", "copter_papers/sia", "copter_frontends/vocabulary/semantics.py")),
    "TE": ("method/traffic.md", 21, ("copter_frontends/traffic",)),
    "SH": ("method/shards.md", 15, ("copter_frontends/shards",)),
    "T": ("method/timetable.md", 6, ("copter_serve/slurm_controller",)),
}


def cited_by(paths: list[Path], letter: str) -> set[str]:
    """Numbers of one letter in the text of files; "I3-I6" and "(equations I10, I11)" are all of theirs."""
    found = set()
    for path in paths:
        for first, last in re.findall(rf"\b{letter}(\d{{1,2}})(?:(?:-| to ){letter}(\d{{1,2}}))?\b", path.read_text()):
            found |= {f"{letter}{i}" for i in range(int(first), int(last or first) + 1)}
    return found


@pytest.mark.parametrize("letter", PAGES)
def test_cited_equations_exist_and_numbered_ones_are_cited(letter: str) -> None:
    page, count, pattern = PAGES[letter]
    text = (ROOT / "docs" / page).read_text()
    numbered = re.findall(rf"\\tag\{{({letter}\d+)\}}", text) + re.findall(rf"\*\*({letter}\d+)\.", text)
    sources = [path for path in (ROOT / "copter").rglob(pattern) if path.suffix in (".py", ".pyx", ".pxd")]
    assert sorted(numbered) == sorted(f"{letter}{i}" for i in range(1, count + 1))
    cited = cited_by(sources, letter)
    assert cited <= set(numbered)
    if letter in "IPD":
        assert set(numbered) <= cited


@pytest.mark.parametrize("letter", FRONTEND_PAGES)
def test_a_frontends_page_numbers_what_its_code_cites(letter: str) -> None:
    page, count, places = FRONTEND_PAGES[letter]
    text = (ROOT / "docs" / page).read_text()
    numbered = re.findall(rf"\\tag\{{({letter}\d+)\}}", text) + re.findall(rf"\*\*({letter}\d+)\.", text)
    named = [ROOT / "frontends" / place for place in places]
    sources = [path for place in named for path in (place.rglob("*.py") if place.is_dir() else [place])]
    assert sorted(numbered) == sorted(f"{letter}{i}" for i in range(1, count + 1))
    assert cited_by(sources, letter) == set(numbered)
    assert cited_by([ROOT / "docs" / page], letter) == set(numbered)


@pytest.mark.parametrize("letter", PAGES)
def test_pages_point_to_equations_that_exist(letter: str) -> None:
    pages = [ROOT / "docs" / page for page, _, _ in PAGES.values()]
    assert cited_by(pages, letter) == {f"{letter}{i}" for i in range(1, PAGES[letter][1] + 1)}


@pytest.mark.parametrize("page", [page for page, *_ in (PAGES | FRONTEND_PAGES).values()])
def test_equations_are_numbered_in_the_order_of_the_page(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    numbers = [int(tag or bold) for tag, bold in re.findall(r"\\tag\{[A-Z]+(\d+)\}|\*\*[A-Z]{1,2}(\d+)\.", text)]
    assert numbers == list(range(1, len(numbers) + 1))


# What the extensions of a room may import of ours; import-linter sees Python files only.
BELOW = {
    "model/matrix": {"model.matrix", "runtime"},
    "methods/blocks": {"methods.blocks", "methods.simplex", "methods.tally"},
    "methods/interior": {"methods.interior"},
    "methods/proximal": {"methods.proximal"},
    "methods/worth": {"methods.worth"},
    "methods/simplex": {"methods.simplex", "methods.tally"},
    "shims": {"model.matrix"},
}


@pytest.mark.parametrize("source", sorted((ROOT / "copter").rglob("*.p[yx][xd]")), ids=lambda path: path.name)
def test_extensions_import_rooms_below_them_only(source: Path) -> None:
    room = source.relative_to(ROOT / "copter").parent.as_posix()
    imported = re.findall(
        r"^(?:from|c?import) copter\.((?:methods\.|model\.)?\w+)", source.read_text(), flags=re.MULTILINE
    )
    assert set(imported) <= BELOW.get(room, set())


# Where each package lies; compiled modules count with what they cimport and with what their stubs import.
FRONTENDS = ("copter_distributed", "copter_frontends", "copter_serve", "copter_papers")
ROOTS = {"copter": ROOT, **dict.fromkeys(FRONTENDS, ROOT / "frontends")}


def imports_of(source: Path) -> set[str]:
    """Dotted names that a file imports, at its top, in functions or for type checking only; `from a import b`: a.b."""
    if source.suffix == ".pyx":
        lines = re.findall(r"^(?:from ([\w.]+) c?import ([\w, ]+)|c?import ([\w.]+))", source.read_text(), re.MULTILINE)
        names = {f"{room}.{name.strip().split()[0]}" for room, listed, _ in lines if room for name in listed.split(",")}
        return names | {name for _, _, name in lines if name}
    found = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("package", ROOTS)
def test_no_circle_among_modules(package: str) -> None:
    sources: dict[str, list[Path]] = {}
    for source in (ROOTS[package] / package).rglob("*.py*"):
        if source.suffix in (".py", ".pyx", ".pyi"):
            parts = source.relative_to(ROOTS[package]).with_suffix("").parts
            sources.setdefault(".".join(parts[:-1] if parts[-1] == "__init__" else parts), []).append(source)

    def module(name: str) -> str:
        return name if name in sources else name.rpartition(".")[0]

    graph = {each: {module(name) for path in paths for name in imports_of(path)} for each, paths in sources.items()}
    arrows = {each: (targets & set(sources)) - {each} for each, targets in graph.items()}
    assert sum(map(len, arrows.values())) > len(arrows) // 2
    TopologicalSorter(arrows).prepare()  # CycleError names the modules of a circle


# Files of interop that stand for copter in other tools; the others are behind copter's own names.
DOORS = ("cvxpy", "frames", "linopy", "pyomo", "scipy_input", "scipy_linprog", "scipy_options")
PUBLIC = {*copter.__all__, "VERSION", "Template", "Internals"}  # internals are there for the doors


@pytest.mark.parametrize("door", DOORS)
def test_doors_use_what_copter_names(door: str) -> None:
    used = {name for name in imports_of(ROOT / "copter" / "interop" / f"{door}.py") if name.startswith("copter.")}
    assert {
        name for name in used if not name.startswith("copter.interop.") and name.split(".")[-1] not in PUBLIC
    } == set()


def rooms_of(package: str, below: str | None = None) -> dict[str, set[str]]:
    """Rooms (first-level packages and files, and the package itself) -> the rooms that each imports; Python files.

    The imported rooms are those of the package, or of the one named.
    """
    found: dict[str, set[str]] = {}
    below = below or package
    home = ROOTS[below] / below
    for source in (ROOTS[package] / package).rglob("*.py"):
        parts = source.relative_to(ROOTS[package] / package).with_suffix("").parts
        room = package if parts == ("__init__",) else parts[0]
        names = [name.split(".") for name in imports_of(source)]
        rooms = {
            name[1] if (home / name[1]).is_dir() or (home / f"{name[1]}.py").is_file() else below
            for name in names
            if name[0] == below and len(name) > 1
        }
        rooms |= {below for name in names if name == [below]}
        found.setdefault(room, set()).update(rooms - {room})
    return found


@pytest.mark.parametrize("package", ROOTS)
def test_a_package_has_at_most_twelve_rooms_on_seven_floors(package: str) -> None:
    rooms = rooms_of(package)
    assert len(rooms.keys() - {package}) <= 12
    floors = dict.fromkeys(rooms, 0)
    for room in TopologicalSorter(rooms).static_order():
        floors[room] = 1 + max((floors[below] for below in rooms[room]), default=0)
    assert max(floors.values()) <= 7


MAPS = {
    "copter": "architecture",
    "copter_distributed": "map_distributed",
    "copter_frontends": "map_frontends",
    "copter_serve": "map_serve",
    "copter_papers": "map_papers",
}


@pytest.mark.parametrize("package", ROOTS)
def test_a_packages_map_has_a_line_for_each_room(package: str) -> None:
    text = (ROOT / "docs" / "reference" / f"{MAPS[package]}.md").read_text()
    home = ROOTS[package] / package
    rooms = [f"{path.name}/" for path in home.iterdir() if path.is_dir() and any(path.glob("*.py"))]
    assert rooms
    assert [room for room in rooms if f"`{room}`" not in text] == []


def test_the_engine_has_at_most_seventy_arrows() -> None:
    assert sum(map(len, rooms_of("copter").values())) <= 70


def test_the_drawing_has_the_arrows_of_the_code() -> None:
    drawing = runpy.run_path(str(ROOT / "docs" / "reference" / "draw_architecture.py"))
    floors, arrows = drawing["read"]((ROOT / "docs" / "reference" / "architecture.txt").read_text())
    drawn = {room for _, rooms in floors for room, _ in rooms}
    frontends = set[str]().union(*(room for each in FRONTENDS for room in rooms_of(each, "copter").values()))
    code = rooms_of("copter") | {"copter_frontends": frontends}
    assert drawn == set(code) - {"copter"}
    assert sorted(arrows) == sorted((room, below) for room in drawn for below in code[room] & drawn)
    assert len(floors) <= 7 + 1  # the frontends' floor is above the engine's


def test_importing_copter_opens_no_door() -> None:
    code = "import sys, copter; print([m for m in sys.modules if m.startswith(('copter.interop', 'cvxpy', 'linopy'))])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_drawing_is_that_of_its_text() -> None:
    drawing = runpy.run_path(str(ROOT / "docs" / "reference" / "draw_architecture.py"))
    text = (ROOT / "docs" / "reference" / "architecture.txt").read_text()
    assert drawing["draw"](text) == (ROOT / "docs" / "reference" / "architecture.svg").read_text()


def test_no_extension_counts_from_the_end() -> None:
    """They are compiled without wraparound: a[-1] is then what an object makes of it, and NumPy 2.5 makes an error."""
    sources = [path for kind in ("*.pyx", "*.pxd") for path in (ROOT / "copter").rglob(kind)]
    places = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sources
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"[\w\])]\[-\s*\d+\s*[],]", line)
    ]
    assert sources
    assert not places


def test_every_extension_has_a_stub() -> None:
    assert [path.with_suffix(".pyx") for path in STUBS] == sorted((ROOT / "copter").rglob("*.pyx"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.stem)
def test_stub_names_what_the_extension_has(stub: Path) -> None:
    module = importlib.import_module(".".join(stub.relative_to(ROOT).with_suffix("").parts))
    body = ast.parse(stub.read_text()).body
    declared = {node.name: node for node in body if hasattr(node, "name")}
    constants = {node.target.id for node in body if isinstance(node, ast.AnnAssign)}
    public = {name for name in vars(module) if not name.startswith("_")} - {"np"}
    assert set(declared) | constants == public
    for name, node in declared.items():
        if isinstance(node, ast.ClassDef):
            members = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            members |= {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
            assert members - {"__init__"} == {member for member in vars(getattr(module, name)) if member[0] != "_"}


def test_a_checkout_without_a_build_says_what_to_do(tmp_path: Path) -> None:
    for path in (ROOT / "copter").rglob("*.py"):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", "import copter"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "ImportError: copter's compiled modules are not built here" in done.stderr
    assert "make test" in done.stderr
