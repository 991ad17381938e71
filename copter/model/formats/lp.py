"""LP files (CPLEX's LP format): read_lp and write_lp (docs/reference/files.md has the rules)."""

from __future__ import annotations

from copter.model.formats.lp_reader import LpReader
from copter.model.formats.lp_tokens import LpError, read_words
from copter.model.formats.lp_writer import write_lp
from copter.problem.linear_program import LinearProgram
from copter.storage.files import PathLike

__all__ = ["LpError", "read_lp", "write_lp"]


def read_lp(path: PathLike) -> LinearProgram:
    """Read a linear or mixed-integer program from an LP file, plain or gzipped.

    Parameters
    ----------
    path : path
        Compression is told by content, not by name.

    Returns
    -------
    LinearProgram
        With names of rows and columns; rows without one are called R1, R2, ... by their places.

    Raises
    ------
    LpError
        (an InvalidDataError) For a file that cannot be read, a line that is wrong (with its number), or what no linear
        program can hold: quadratic terms, indicators, special ordered sets.

    Warns
    -----
    UserWarning
        Where semi-continuous columns had to be relaxed: below zero, or without an upper bound.

    Examples
    --------
    >>> import copter, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(folder + "/a.lp", "w") as file:
    ...         print("max", "x", "st", "x <= 3", "end", sep=chr(10), file=file)
    ...     copter.solve(copter.read_lp(folder + "/a.lp")).objective
    3.0
    """
    return LpReader(read_words(path)).program()
