"""Reads Slurm's texts: numbers, host lists, counts of resources, and constraints on features."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from copter_serve.views.view import ViewError


def errors_of(found: Any) -> str:
    """Return what a document says went wrong, empty if nothing: Slurm prints one, with empty lists, as a success."""
    errors = found.get("errors") if isinstance(found, Mapping) else None
    for each in errors if isinstance(errors, list) else ():
        told = (each.get("description") or each.get("error")) if isinstance(each, Mapping) else each
        return str(told or each)
    return ""


RANGES = re.compile(r"\[([\d,-]+)\]")
AMOUNT = re.compile(r"^(\d+(?:\.\d+)?)([KMGTPE]?)$")
OTHER_TRES = ("cpu", "mem", "node", "billing", "energy", "license", "bb", "fs", "vmem", "pages")
FACTORS = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50, "E": 2.0**60}
MOST_NODES = 1_000_000  # most nodes of one host list
NONE = ("", "(null)", "N/A", "none", "None", "null")


def number(value: Any) -> float | None:
    """Return a number as Slurm's versions write it: plain, or with a flag that says whether it is set."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) and not value.get("infinite", False) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def text(value: Any) -> str:
    """Return a text; the words for nothing become an empty one."""
    return "" if value is None or str(value) in NONE else str(value)


def words(value: Any) -> list[str]:
    """Return the members of a list, which old releases write as one text with commas."""
    found = value if isinstance(value, list) else str(value or "").split(",")
    return [word for word in (text(each).strip() for each in found) if word]


def parts(value: Any) -> list[str]:
    """Return the parts of a list of resources; commas within brackets do not separate."""
    found, depth, at = [""], 0, text(value)
    for sign in at:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return [each.strip() for each in found if each.strip()]


def amount(where: str, value: str, unit: str = "") -> float:
    """Return a count of resources, in multiples of a unit; ViewError unless it is a number of 0 or more."""
    found = AMOUNT.match(value.strip())
    if found is None:
        raise ViewError(f"{where} has a count {value!r} that is no number of 0 or more")
    return float(found[1]) * (FACTORS[found[2]] / FACTORS[unit] if found[2] else 1.0)


def tres(where: str, value: Any) -> dict[str, float]:
    """Return the counts of a list such as "cpu=8,mem=64G,node=1,gres/gpu=2"; memory in MiB.

    Raises
    ------
    ViewError
        For a count that is no number, and for a part of a GPU.
    """
    found: dict[str, float] = {}
    for each in parts(value):
        name, equals, count = each.partition("=")
        if not equals:
            continue
        found[name] = amount(f"{where} {each!r}", count, "M" if name == "mem" else "")
        if (name.startswith("gres/") or name in ("cpu", "node")) and found[name] != math.floor(found[name]):
            raise ViewError(f"{where} {each!r} has a count that is no whole number")
    return found


def gres(where: str, value: Any) -> dict[str, float]:
    """Return the counts of a list such as "gpu:a100:4(S:0-1),shard:16" or "gres/gpu:2", by "gpu:a100", "gpu", ...

    CPUs, memory, licenses and buffers, as in the "cpu=8,gres/gpu=1" of one task, are left out: other fields tell them.

    Raises
    ------
    ViewError
        For a count that is no number.
    """
    found: dict[str, float] = {}
    for each in parts(value):
        plain = re.sub(r"^gres[/:]", "", re.sub(r"\(.*\)$", "", each))
        name, equals, count = plain.partition("=")
        if not equals:
            head, _, last = plain.rpartition(":")
            is_count = bool(head) and (AMOUNT.match(last) is not None or last.startswith(("-", "+")))
            name, count = (head, last) if is_count else (plain, "1")
        if equals and each.partition("=")[0].partition("/")[0] in OTHER_TRES:
            continue
        name = name.replace(":no_consume", "")
        if re.fullmatch(r"[\w.:+@ -]+", name):
            found[name] = found.get(name, 0.0) + amount(f"{where} {each!r}", count)
    return found


def kinds(counts: Mapping[str, float], repeated: bool = False) -> dict[str, float]:
    """Return counts as amounts of "gres/NAME" and "gres/NAME:TYPE", where the first has the sum over all types.

    Parameters
    ----------
    counts : mapping of str to float
        By "NAME" or "NAME:TYPE".
    repeated : bool
        Whether the count of "NAME" contains those of its types, as in lists of TRES.
    """
    typed: dict[str, float] = {}
    plain: dict[str, float] = {}
    for name, count in counts.items():
        if ":" in name:
            typed[f"gres/{name}"] = count
            whole = f"gres/{name.partition(':')[0]}"
            typed[whole] = typed.get(whole, 0.0) + count
        else:
            plain[f"gres/{name}"] = count
    both = max if repeated else float.__add__
    return typed | {name: both(count, typed.get(name, 0.0)) for name, count in plain.items()}


def expanded(names: str) -> list[str]:
    """Return the names of a host list such as n[1-3,07] or a1,b[2-3]; ViewError for one that cannot be read."""
    found, depth = [""], 0
    for sign in names:
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    every: list[str] = []
    for each in filter(None, (one.strip() for one in found)):
        every += _grown(each, names)
        if len(every) > MOST_NODES:
            raise ViewError(f"the host list {names!r} has more than {MOST_NODES:,} names")
    return every


def _grown(name: str, whole: str) -> list[str]:
    inner = RANGES.search(name)
    if inner is None:
        if "[" in name or "]" in name:
            raise ViewError(f"the host list {whole!r} cannot be read: give what `sinfo -N --json` prints")
        return [name]
    tails = _grown(name[inner.end() :], whole) if inner.end() < len(name) else [""]
    heads = numbers(inner[1])
    if len(heads) * len(tails) > MOST_NODES:
        raise ViewError(f"the host list {whole!r} has more than {MOST_NODES:,} names")
    return [f"{name[: inner.start()]}{each}{tail}" for each in heads for tail in tails]


def numbers(values: str, most: int = MOST_NODES) -> list[str]:
    """Return the numbers of a list such as 1-3,07 or 1-9:2, padded as given; at most so many."""
    found: list[str] = []
    for each in values.split(","):
        reach, _, step = each.partition(":")
        first, _, last = reach.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal() and (not step or (step.isdecimal() and int(step)))):
            continue  # Slurm shortens long lists by "..."
        stride = int(step or 1)
        end = min(int(last or first), int(first) + stride * (most - len(found) - 1))
        found += [str(at).zfill(len(first)) for at in range(int(first), end + 1, stride)]
    return found[:most]


# Features -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Features:
    """A constraint on nodes' features: alternatives, of which all nodes of a job must satisfy the same.

    Attributes
    ----------
    alternatives : tuple of str
        Python-free expressions of names, "&", "|" and parentheses; one empty text without a constraint.
    """

    alternatives: tuple[str, ...]

    @classmethod
    def of(cls, constraint: str) -> Features:
        """Read a constraint; ViewError for counts of nodes and for what is not known."""
        at = constraint.replace(" ", "").replace(",", "&")
        inner = re.fullmatch(r"\[([^\[\]*()&]+)\]", at)
        found = (at,) if inner is None else tuple(inner[1].split("|"))
        made = cls(found)
        for each in found:
            _holds(each, frozenset())
        return made

    @staticmethod
    def met(alternative: str, features: frozenset[str]) -> bool:
        """Whether a node with these features satisfies an alternative."""
        return not alternative or _holds(alternative, features)


def _holds(expression: str, features: frozenset[str]) -> bool:
    if not expression:
        return True
    tokens = re.findall(r"[&|()]|[^&|()]+", expression)
    at = 0

    def term() -> bool:
        nonlocal at
        if at >= len(tokens):
            raise ViewError(f"the constraint {expression!r} cannot be read")
        token = tokens[at]
        at += 1
        if token == "(":
            value = either()
            if at >= len(tokens) or tokens[at] != ")":
                raise ViewError(f"the constraint {expression!r} cannot be read")
            at += 1
            return value
        if token in "&|)" or not re.fullmatch(r"[\w.:=/+@%-]+", token):
            raise ViewError(f"the constraint {expression!r} is not modelled")
        return token in features

    def either() -> bool:
        nonlocal at
        value = term()
        # Slurm reads a list without parentheses from left to right
        while at < len(tokens) and tokens[at] in "&|":
            sign = tokens[at]
            at += 1
            right = term()
            value = (value and right) if sign == "&" else (value or right)
        return value

    value = either()
    if at != len(tokens):
        raise ViewError(f"the constraint {expression!r} cannot be read")
    return value
