"""What the ablation switches: methods, accelerators, presolve's reductions, and every numeric constant of the solvers.

A constant of a compiled module is a variable of its shared object, found by the object's table of symbols.
"""

from __future__ import annotations

import ast
import ctypes
import importlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import copter
from copter.methods.blocks.program import BlockProgram
from copter.methods.presolve.reduce import ALL as REDUCTIONS
from copter.runtime.settings import Settings

ROOT = Path(copter.__file__).parent
ROOMS = ("methods/*.py", *(f"methods/{room}/*" for room in ("proximal", "blocks", "simplex", "interior")))
# Facts of the machine's arithmetic, of a layout or of a random generator: no values to choose.
FACTS = {"HALF_ULP", "SLOT_SHIFT", "NONE", "LISTED", "SEED", "UNJUDGED", "SKIP", "ROUNDED_UP", "COUPLING"}
COMPILED = re.compile(r"^cdef (double|int) ([A-Z_]+) = ([-+.\de* ]+?) *(?:#|$)", re.MULTILINE)
OF_SETTINGS = (
    "max_proximal_steps",
    "descent_sweeps",
    "warm_sigma",
    "sigma_growth",
    "trust_radius",
    "interior_rows",
    "basis_columns",
)
GUARDS = {  # why a constant is there that nothing depends on between half and double, by ends of names
    "guard: of the clock": "SLICE SLICE_S CHUNK FIRST_CHUNK CHECK_FLOPS LOOK_S GRACE_S UNFINISHED OFTEN AHEAD_PASSES "
    "methods/choose.py:PATIENCE",
    "guard: of memory": "room.py:SHARE blocks/solve.py:MOST_ROWS MOST_ENTRIES MOST_AUGMENTED "
    "room.py:IDLE LEAST_IDLE DENSE_ROWS MOST_FILL SIMPLEX_ENTRIES SIMPLEX_ROWS MOST_FLOPS",
    "guard: of a method's end": "max_proximal_steps MAX_NEWTON_STEPS MAX_TRIALS MAX_VIOLATED_STEPS MAX_STEPS STALL "
    "STALLED TRUST_EXITS ROUNDS FACE_ROUNDS REFINEMENTS PATIENCE CLOSINGS MOST_FAILURES MOST_TROUBLE MOST_IDLE "
    "MOST_LOOKS MOST_TRIED MOST_UPDATES MOST_WORK CONE_WORK COMPLETIONS PASSES COLD_COLUMN_WORK COLUMN_WORK "
    "RESUMED_WORK DIRECT_WORK SIMPLEX_WORK SPARSE_WORK TIGHTENINGS MOST_COLD GUESSES FLIPS KEPT",
    "guard: of rounding": "TIE PIVOT LEAST_PIVOT LEAST_ENTRY TINY AGREEMENT DRIFT REST USED_UP ROUNDING ROUNDED SNAP "
    "TIGHT LEVEL STILL DEPENDENT REGULARISATION RAY_TOLERANCE SAFE SMALL_MOVE NO_STEP OUTWARD SLOPE DELTA LIFT "
    "SINGULAR ACCURATE ROUGH CLOSED LEAST_CLOSED CLEAR VALUE NOTHING iteration.py:NEAR LEAST_GOAL GOAL ENOUGH "
    "WELL_WITHIN RAY_CLEANING TOLERANCE FEASIBLE FITTING SHARP CANCELLED CLOSER BETWEEN IMPROVES RATE AT_REST "
    "MODERATE",
    "guard: of a division": "path_following.py:SMALL column_equations.py:LEAST LARGEST LEAST_ROOM MOST_WEIGHT "
    "LEAST_WEIGHT REST MOST MOST_FREE_WEIGHT FREE_WEIGHT WEIGHT",
}
OWNERS = {  # what stays and has the other constants, by the longest beginning of their names
    "": "a setting that callers may need",
    "methods/choose.py": "the order of methods",
    "methods/": "the loops around the methods",
    "methods/path_following.py": "interior points",
    "methods/proximal": "proximal method (rounds)",
    "methods/proximal/open_groups": "steps in one call, over open groups",
    "methods/proximal/steps.pyx": "steps in one call, over open groups",
    "methods/proximal/proximal_point.py IDLE": "trust radius",
    "methods/proximal/purif": "walk to a vertex",
    "methods/proximal/descent.py": "coordinate descent opens a cold solve",
    "methods/proximal/price_descent.py": "the method price_descent",
    "methods/proximal/coordinate_descent.py": "the thesis's method, a baseline",
    "methods/blocks": "interior points on blocks (rounds)",
    "methods/blocks/basis.py": "pivots from the last basis (rounds)",
    "methods/blocks/block_": "pivots from the last basis (rounds)",
    "methods/blocks/slotted_program.py": "pivots from the last basis (rounds)",
    "methods/blocks/screen.py": "screen: likely rows first",
    "methods/blocks/reduced_program.py": "useless columns left out",
    "methods/blocks/settled": "settled blocks",
    "methods/blocks/start.py": "shares of limits as a start",
    "methods/blocks/structure.py": "blocks of linear programs",
    "methods/simplex": "simplex method of linear programs",
    "methods/simplex/shift.py": "pivots from the last optimum of a whole model (rounds)",
    "methods/simplex/warm_basis.py": "pivots from the last optimum of a whole model (rounds)",
    "methods/simplex/row_bounds.py": "pivots from the last optimum of a whole model (rounds)",
    "methods/interior": "interior points of linear programs",
    "methods/interior/dense_columns.py": "dense columns cut",
    "methods/interior/column_equations.py": "columns' equations",
    "methods/interior/augmented_system.py": "augmented system",
    "methods/interior/refinement.py": "iterative refinement",
    "methods/interior/polish.py": "polish onto the face",
    "methods/interior/method.py FAR_START": "second run farther inside",
}
Change = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Variant:
    """One change of the solver.

    Attributes
    ----------
    name : str
        The thing that is switched: `presolve`, `methods/blocks/screen.py NEAR`.
    kind : str
        method, accelerator, reduction, setting or constant.
    change : str
        off, half or double.
    on : callable
        Gives a context manager in which the change is in force.
    settings : dict
        Settings instead of the default ones.
    reads : frozenset of str
        Names of which a solve reads one where the change can matter; of a compiled module the folder.
    """

    name: str
    kind: str
    change: str
    on: Change
    settings: dict[str, Any]
    reads: frozenset[str]

    @property
    def key(self) -> str:
        """The name in the file of results."""
        return f"{self.kind}: {self.name}: {self.change}"


def reason(variant: Variant) -> str:
    """Why a thing is there that no workload needs as it is: what it guards, or what it is a part of."""
    place, _, name = variant.name.rpartition(" ")
    for why, names in GUARDS.items():
        for each in names.split():
            file, _, end = each.rpartition(":")
            if name == end and place.endswith(file):
                return why
    if variant.kind not in ("setting", "constant"):
        return ""
    return f"part: {OWNERS[max((each for each in OWNERS if variant.name.startswith(each)), key=len)]}"


@contextmanager
def nothing() -> Iterator[None]:
    """Change nothing."""
    yield


@contextmanager
def put(module: str, name: str, value: object) -> Iterator[None]:
    """Another value of a module's name (`Class.attribute` too), there and wherever the same object was imported."""
    owner = importlib.import_module(module)
    if "." in name:
        first, name = name.split(".")
        before, places = getattr(getattr(owner, first), name), [getattr(owner, first)]
    else:
        before = getattr(owner, name)
        loaded = [each for key, each in sys.modules.items() if key.startswith("copter.") and each is not None]
        function = callable(before)
        places = [owner] + [
            each for each in loaded if function and vars(each).get(name) is before and each is not owner
        ]
        places += [] if function else importers(module, name)
    for place in places:
        setattr(place, name, value)
    try:
        yield
    finally:
        for place in places:
            setattr(place, name, before)


def importers(module: str, name: str) -> list[object]:
    """Loaded modules that import a name of this module."""
    found: list[object] = []
    for key, each in list(sys.modules.items()):
        file = getattr(each, "__file__", None)
        if not key.startswith("copter.") or file is None or not file.endswith(".py") or name not in vars(each):
            continue
        for node in ast.walk(ast.parse(Path(file).read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == module:
                found += [each for alias in node.names if alias.name == name]
    return found


@contextmanager
def poked(module: str, name: str, kind: str, value: float) -> Iterator[None]:
    """Another value of a variable of a compiled module."""
    file = importlib.import_module(module).__file__
    symbols = subprocess.run(["nm", str(file)], capture_output=True, text=True, check=True).stdout
    place = next(
        line.split()[0]
        for line in symbols.splitlines()
        if line.endswith(f"{len(module.split('.')[-1])}{module.split('.')[-1]}_{name}")
    )
    maps = Path("/proc/self/maps").read_text().splitlines()
    base = min(int(line.split("-")[0], 16) for line in maps if line.endswith(str(file)))
    cell = (ctypes.c_double if kind == "double" else ctypes.c_int).from_address(base + int(place, 16))
    before = cell.value
    cell.value = value if kind == "double" else int(value)
    try:
        yield
    finally:
        cell.value = before


@contextmanager
def all_of(*changes: Change) -> Iterator[None]:
    """Several changes at once."""
    with ExitStack() as stack:
        for each in changes:
            stack.enter_context(each())
        yield


# Methods and accelerators ---------------------------------------------------------------------------------------------


def without_choices(*names: str) -> Change:
    """Without the named choices of `copter/methods/choose.py`; a model keeps one where no other is left."""
    choose = importlib.import_module("copter.methods.choose")
    left_out, choose_for_model = {getattr(choose, name) for name in names}, choose.for_model

    def of(asked: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        order = asked(*arguments)
        left = tuple(each for each in order if each not in left_out)
        return left or (order if asked is choose_for_model else ())

    functions = ("for_model", "for_program")
    return partial(
        all_of, *(partial(put, "copter.methods.choose", n, partial(of, getattr(choose, n))) for n in functions)
    )


def same(program: BlockProgram) -> tuple[BlockProgram, Any]:
    """The program with all its rows."""
    return program, np.arange(program.n_rows, dtype=np.int32)


def put_in(folder: str, name: str, value: object) -> Change:
    """The change of :func:`put` in a module of `copter.methods`."""
    return partial(put, f"copter.methods.{folder}", name, value)


def never(*_: object, **__: object) -> bool:
    """False."""
    return False


def no_answer(*_: object, **__: object) -> None:
    """None."""


def none_easy(*arguments: Any) -> float:
    """0, and none of the groups is easy."""
    arguments[-1][:] = 0
    return 0.0


@contextmanager
def no_plain_minima() -> Iterator[None]:
    """Every group's minimum is found as if its columns had bounds of their own."""
    room = "proximal.proximal_point"
    python_steps = put_in("proximal.solve", "solve_in_one_call", no_answer)
    plain = put_in(room, "all_easy_minimum", lambda *_: (0.0, False))
    with all_of(python_steps, put_in(room, "easy_minimum", none_easy), plain):
        yield


def switched_off() -> list[Variant]:
    """Every method, accelerator and reduction, switched off."""
    pivots = ("PIVOTS", "_COLD_PIVOTS", "_ROW_PIVOTS")
    table: list[tuple[str, str, Change, dict[str, Any]]] = [
        ("method", "pivots from the last basis (rounds)", without_choices(*pivots), {}),
        ("method", "pivots from an empty basis (rounds)", without_choices("_COLD_PIVOTS"), {}),
        ("method", "simplex method of a whole model (rounds)", without_choices("WHOLE_PIVOTS"), {}),
        ("method", "pivots from the last optimum of a whole model (rounds)", without_choices("RESUMED"), {}),
        ("method", "interior points on blocks (rounds)", without_choices("_BLOCKS", "_PRIVATE"), {}),
        ("method", "proximal method (rounds): interior points on blocks instead", nothing, {"interior_rows": 0}),
        ("method", "interior points, of blocks too (rounds)", nothing, {"interior_columns": 0}),
        ("method", "simplex method before presolve", without_choices("_DIRECT"), {}),
        ("method", "simplex method of linear programs", without_choices("_DIRECT", "_SMALL"), {}),
        ("method", "blocks of linear programs", without_choices("_STRUCTURED"), {}),
        ("method", "interior points of linear programs: proximal instead", nothing, {"method": "proximal"}),
        ("method", "presolve", nothing, {"presolve": False}),
        ("accelerator", "screen: likely rows first", put_in("blocks.screen", "is_worth_it", never), {}),
        (
            "accelerator",
            "loose rows left out",
            put_in("blocks.program", "BlockProgram.without_loose_rows", same),
            {},
        ),
        ("accelerator", "useless columns left out", put_in("blocks.reduced_program", "has_limits_alone", never), {}),
        ("accelerator", "shares of limits as a start", put_in("blocks.start", "shares", no_answer), {}),
        ("accelerator", "the last program patched", put_in("blocks.program", "patched", no_answer), {}),
        ("accelerator", "basis carried through edits", put_in("blocks.basis", "carried", no_answer), {}),
        ("accelerator", "trust radius", nothing, {"trust_radius": float("inf")}),
        (
            "accelerator",
            "steps in one call, over open groups",
            put_in("proximal.solve", "solve_in_one_call", no_answer),
            {},
        ),
        ("accelerator", "settled blocks", put_in("blocks.settled", "MOST_LEFT", 0.0), {}),
        ("accelerator", "minima over plain groups", no_plain_minima, {}),
        ("accelerator", "coordinate descent opens a cold solve", nothing, {"descent_sweeps": 0}),
        ("accelerator", "walk to a vertex", put_in("proximal.purification", "WALK_ROWS", 0), {}),
        ("accelerator", "vertex wanted at all", nothing, {"purify": False}),
        ("accelerator", "corrections of centrality", put_in("path_following", "CORRECTIONS", 0), {}),
        ("accelerator", "polish onto the face", put_in("interior.polish", "polished", lambda *_: ()), {}),
        ("accelerator", "iterative refinement", put_in("interior.method", "REFINEMENTS", 0), {}),
        ("accelerator", "dense columns cut", put_in("interior.dense_columns", "LEAST", 10**12), {}),
        ("accelerator", "augmented system", put_in("interior.augmented_system", "MOST_AUGMENTED", 0), {}),
        ("accelerator", "columns' equations", put_in("interior.column_equations", "WORTH", 1e300), {}),
        ("accelerator", "second run farther inside", put_in("interior.method", "FAR_START", 1.0), {}),
        ("accelerator", "scaling of the simplex method", put_in("simplex.form", "PASSES", 0), {}),
    ]
    rows = [Variant(name, kind, "off", on, settings, reads_of(on, settings)) for kind, name, on, settings in table]
    return rows + [
        Variant(each.__name__, "reduction", "off", without_reduction(each), {}, frozenset(("presolve",)))
        for each in REDUCTIONS
    ]


def reads_of(on: Change, settings: dict[str, Any]) -> frozenset[str]:
    """Names of which a solve that a change can matter to reads one."""
    if "method" in settings:  # of linear programs; of a model it would be another question
        return frozenset(("for_program",))
    if settings or not isinstance(on, partial) or on.func is not put:
        return frozenset(settings) or frozenset(("for_model", "for_program"))
    return frozenset((str(on.args[1]).rpartition(".")[2],))


def without_reduction(reduction: Callable[..., bool]) -> Change:
    """Presolve without one of its reductions."""
    presolve = importlib.import_module("copter.methods.presolve.reduce").presolve
    kept = tuple(each for each in REDUCTIONS if each is not reduction)
    return put_in("interior.solve", "presolve", lambda lp: presolve(lp, reductions=kept))


# Constants ------------------------------------------------------------------------------------------------------------


def scaled(value: Any, factor: float) -> Any:
    """Half or double of a number, or of each number of a tuple; a whole number stays whole."""
    if isinstance(value, tuple):
        return tuple(scaled(each, factor) for each in value)
    return int(value * factor) if isinstance(value, int) else value * factor


def is_numeric(value: object) -> bool:
    """Whether a value is a number, or a tuple of numbers, other than zero."""
    numbers = value if isinstance(value, tuple) else (value,)
    return bool(numbers) and all(isinstance(n, int | float) and not isinstance(n, bool) and n != 0 for n in numbers)


def sources() -> Iterator[tuple[str, str, Path]]:
    """(module, path below copter, file) of the solver rooms."""
    for pattern in ROOMS:
        for path in sorted(ROOT.glob(pattern)):
            if path.suffix in (".py", ".pyx"):
                place = path.relative_to(ROOT)
                yield ".".join(("copter", *place.with_suffix("").parts)).removesuffix(".__init__"), str(place), path


def constants() -> list[Variant]:
    """Half and double of every numeric constant of the solver rooms, and of the settings that steer a solve."""
    found: list[Variant] = []
    for field in fields(Settings):
        if field.name in OF_SETTINGS:
            for change, factor in (("half", 0.5), ("double", 2.0)):
                found.append(
                    Variant(
                        field.name,
                        "setting",
                        change,
                        nothing,
                        {field.name: scaled(field.default, factor)},
                        frozenset((field.name,)),
                    )
                )
    for module, place, path in sources():
        for name, value, put_value in constants_of(module, path):
            for change, factor in (("half", 0.5), ("double", 2.0)):
                new = scaled(value, factor)
                if new != value and name not in FACTS:
                    reads = name if path.suffix == ".py" else "/".join(place.split("/")[:2])
                    on = partial(put_value, new)
                    found.append(Variant(f"{place} {name}", "constant", change, on, {}, frozenset((reads,))))
    return found


def constants_of(module: str, path: Path) -> Iterator[tuple[str, Any, Callable[[Any], Any]]]:
    """(name, value, what gives it another value) of every numeric constant of a file."""
    text = path.read_text()
    if path.suffix == ".pyx":
        for kind, name, written in COMPILED.findall(text):
            value = (float if kind == "double" else int)(eval(written))
            yield name, value, lambda new, name=name, kind=kind: poked(module, name, kind, new)
        return
    for node in ast.parse(text).body:
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign)
            else node.target
            if isinstance(node, ast.AnnAssign)
            else None
        )
        if isinstance(target, ast.Name) and target.id.isupper():
            value = getattr(importlib.import_module(module), target.id)
            if is_numeric(value):
                yield target.id, value, lambda new, name=target.id: put(module, name, new)


def variants() -> list[Variant]:
    """Everything that is switched, in the order of the page."""
    return [*switched_off(), *constants()]
