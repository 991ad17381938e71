"""MPS files: read_mps and write_mps (docs/reference/files.md has the rules)."""

from __future__ import annotations

from copter.model.formats.mps_fields import Layout, MpsError
from copter.model.formats.mps_reader import program_of
from copter.model.formats.mps_text import read_text
from copter.model.formats.mps_writer import write_mps
from copter.problem.linear_program import LinearProgram
from copter.storage.files import PathLike

__all__ = ["MpsError", "read_mps", "write_mps"]


def read_mps(path: PathLike) -> LinearProgram:
    """Read a linear or mixed-integer program from an MPS file, fixed or free, plain or gzipped.

    Free layout (fields separated by blanks) is tried first; it reads nearly every fixed file too. If it fails, fixed
    columns are tried, which names with blanks need.

    Parameters
    ----------
    path : path
        Compression is told by content, not by name.

    Returns
    -------
    LinearProgram
        With names of rows and columns. The objective constant is minus the objective row's right-hand side.

    Raises
    ------
    MpsError
        (an InvalidDataError) For a file that cannot be read, a line that is wrong (with its number), or a section that
        no linear program can hold.

    Warns
    -----
    UserWarning
        Where semi-continuous columns had to be relaxed, or a second set of right-hand sides, ranges or bounds
        is left out.

    Examples
    --------
    >>> import copter, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     copter.write_mps(copter.LinearProgram([-1.0], [[2.0]], row_upper=3.0), folder + "/lp.mps")
    ...     copter.read_mps(folder + "/lp.mps").row_upper.tolist()
    [3.0]
    """
    text = read_text(path)
    try:
        return program_of(text, Layout.FREE)
    except MpsError as error:
        if error.line_number == 0:  # every line was read; the error is about the whole file
            raise
        first = error
    try:
        return program_of(text, Layout.FIXED)
    except MpsError as second:
        raise (second if second.line_number > first.line_number else first) from None
