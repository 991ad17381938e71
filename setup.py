"""The extension list, nothing else; all metadata is in pyproject.toml.

COPTER_DEBUG=1 turns bounds checks on. COPTER_LEVELS=v2,v3,v4 builds for these levels of x86-64: the first one in place,
the others under copter/levels/, chosen at import (copter/runtime/processor.py). Without it there is one build, for this
processor's level.

Some modules in Python are compiled too (`WHOLE`): those that change a model or a session. Python handles a signal
between two instructions of its own, and compiled code has none, so that Ctrl-C cannot end a change half way.

COPTER_BUILT=1 says that the modules are built in place already (`make` does this, with a line a module).

Cython's own code for memoryviews is compiled once, in `copter._cyutility`, instead of once a module, and no debugging
symbols are made: together that saves three quarters of a build.
"""

import os
import runpy
from copy import copy
from pathlib import Path

import numpy
import setuptools
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

if int(setuptools.__version__.partition(".")[0]) < 77:
    raise SystemExit(
        f"copter needs setuptools 77 or newer to build, this is {setuptools.__version__}: "
        "python -m pip install --upgrade 'setuptools>=77', or leave --no-build-isolation out"
    )
LEVELS = Path("copter/levels")
SHARED = "copter._cyutility"  # what Cython's modules have in common; its source is written by `cythonize`
debug = os.environ.get("COPTER_DEBUG") == "1"
flags = ["-O1", "-g"] if debug else ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math"]
asked = [f"x86-64-{level.strip()}" for level in os.environ.get("COPTER_LEVELS", "").split(",") if level.strip()]
processor = runpy.run_path("copter/runtime/processor.py")
if not set(asked) <= set(processor["LEVELS"]):
    raise SystemExit(f"COPTER_LEVELS names levels of {', '.join(processor['LEVELS'])}: v2,v3,v4")
asked = asked or [processor["processor_level"]()]

# Modules that change a model or a session, step by step: compiled, so that no signal ends them between two steps.
WHOLE = (
    "model/ledger",
    "model/matrix/changes",
    "model/matrix/moves",
    "problem/slots_then",
    "runtime/collector",
    "runtime/guard",
    "runtime/watch",
    "session/recorder",
    "session/session",
    "storage/disk",
    "storage/files",
    "storage/journal",
    "storage/tape/writer",
)


class BuildLevels(build_ext):
    """As many extensions at a time as there are cores, a line for each; a folder of objects for each level."""

    def finalize_options(self) -> None:
        """Take all cores where no number was given."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extension(self, ext: Extension) -> None:
        """Build one extension for its level, by a command of its own: several run at a time."""
        own = copy(self)
        built = Path(self.get_ext_fullpath(ext.name))
        if not built.exists() or any(Path(each).stat().st_mtime > built.stat().st_mtime for each in ext.sources):
            print(f"[{self.extensions.index(ext) + 1}/{len(self.extensions)}] {ext.name}", flush=True)
        own.build_temp = os.path.join(self.build_temp, ext.level or "")
        super(BuildLevels, own).build_extension(ext)


def for_level(extension: Extension, level: str | None, first: bool) -> Extension:
    """The extension as it is built for one level."""
    found = copy(extension)
    inside = extension.name.removeprefix("copter.")
    found.name = found._full_name = extension.name if first else ".".join((*LEVELS.parts, level, inside))
    found.extra_compile_args = [*extension.extra_compile_args, *([f"-march={level}"] if level else [])]
    found.level = level
    return found


extensions = [
    Extension(
        ".".join(source.with_suffix("").parts),
        [str(source)],
        include_dirs=[numpy.get_include(), "copter/model/matrix"],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=[*flags, "-fopenmp"],
        extra_link_args=["-fopenmp"],
    )
    for source in (*sorted(Path("copter").rglob("*.pyx")), Path(*SHARED.split(".")).with_suffix(".c"))
]
directives = {
    "language_level": 3,
    "boundscheck": debug,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": debug,
    "embedsignature": True,
}
as_python = {"language_level": 3, "annotation_typing": False, "binding": True}  # the meaning that Python gives them


def translated(modules: list[Extension], meaning: dict[str, object]) -> list[Extension]:
    """The extensions with their sources in C."""
    return cythonize(
        [] if os.environ.get("COPTER_BUILT") == "1" else modules,
        build_dir="build/cython",
        compiler_directives=meaning,
        nthreads=os.cpu_count() or 1,
        quiet=True,
        shared_utility_qualified_name=SHARED,
    )


compiled = translated(extensions, directives)
quiet = ["-O1" if debug else "-O2", "-g" if debug else "-g0", "-Wno-array-bounds"]
whole = translated(
    [Extension(f"copter.{each.replace('/', '.')}", [f"copter/{each}.py"], extra_compile_args=quiet) for each in WHOLE],
    as_python,
)
setup(
    ext_modules=[
        for_level(each, level, at == 0)
        for at, level in enumerate(asked)
        for each in (*compiled, *(whole if at == 0 else ()))
        if at == 0 or each.name != SHARED
    ],
    cmdclass={"build_ext": BuildLevels},
)
