"""Conversion of edits to plain values and back, so that reading a stored batch executes no code."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from copter.model.private_rows import PrivateRows
from copter.runtime.errors import SnapshotError
from copter_distributed.messages.messages import Call, TemplateAt

# By kind: the dtype to which an array is converted if the encoding has no code for its own dtype.
KINDS = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}
KEPT = frozenset("dfiqB?")  # dtype codes of arrays that are sent unchanged


def plain_call(call: Call) -> tuple[Any, ...]:
    """Return an edit as a tuple of plain values."""
    return call.method, plain_value(call.arguments), plain_value(call.named)


def call_from(values: Any) -> Call:
    """Return the edit from plain values."""
    try:
        method, arguments, named = values
        return Call(str(method), tuple(value_from(arguments)), dict(value_from(named)))
    except (TypeError, ValueError, LookupError) as error:
        raise SnapshotError(f"a pending edit cannot be read: {error}") from None


def plain_value(value: Any) -> Any:
    """Return a value with every object in it as a tagged tuple."""
    if isinstance(value, TemplateAt):
        return ("template", value.place)
    if isinstance(value, PrivateRows):
        return ("rows", plain_value(value.matrix), plain_value(value.lower), plain_value(value.upper))
    if sp.issparse(value):
        matrix = sp.csc_array(value)
        return ("sparse", list(matrix.shape), matrix.data, matrix.indices, matrix.indptr)
    if isinstance(value, np.ndarray):
        return ("array", value if value.dtype.char in KEPT else value.astype(KINDS[value.dtype.kind]))
    if isinstance(value, (np.dtype, type)):
        return ("type", np.dtype(value).name)
    if isinstance(value, dict):
        return ("dict", [(key, plain_value(each)) for key, each in value.items()])
    if isinstance(value, list):
        return ("list", [plain_value(each) for each in value])
    if isinstance(value, tuple):
        return ("tuple", [plain_value(each) for each in value])
    return ("value", value)


def value_from(plain: Any) -> Any:
    """Return the value from its plain form."""
    tag, *rest = plain
    if tag == "template":
        return TemplateAt(rest[0])
    if tag == "rows":
        return PrivateRows(*(value_from(each) for each in rest))
    if tag == "sparse":
        shape, data, indices, starts = rest
        return sp.csc_array((data, indices, starts), shape=tuple(shape))
    if tag == "dict":
        return {key: value_from(each) for key, each in rest[0]}
    if tag == "list":
        return [value_from(each) for each in rest[0]]
    if tag == "tuple":
        return tuple(value_from(each) for each in rest[0])
    if tag in ("array", "type", "value"):
        return rest[0]
    raise ValueError(f"{tag!r} is no kind of value")
