"""The extension list, nothing else; all metadata is in pyproject.toml.

COPTER_DEBUG=1 turns bounds checks on; COPTER_PORTABLE=1 leaves out the instruction set of the building machine.
"""

import os
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

debug = os.environ.get("COPTER_DEBUG") == "1"
portable = os.environ.get("COPTER_PORTABLE") == "1"
flags = ["-O1", "-g"] if debug else ["-O3", "-fno-math-errno", "-fno-trapping-math"]
flags += [] if portable else ["-march=native"]
extensions = [
    Extension(
        ".".join(source.with_suffix("").parts),
        [str(source)],
        include_dirs=[numpy.get_include(), "copter/kernels"],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=[*flags, "-fopenmp"],
        extra_link_args=["-fopenmp"],
    )
    for source in sorted(Path("copter").rglob("*.pyx"))
]
directives = {
    "language_level": 3,
    "boundscheck": debug,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": debug,
    "embedsignature": True,
}
setup(ext_modules=cythonize(extensions, build_dir="build/cython", compiler_directives=directives, nthreads=2))
