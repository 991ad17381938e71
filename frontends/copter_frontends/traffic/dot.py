"""Reader of networks in DOT: nodes, edges and attributes."""

from __future__ import annotations

import re
from itertools import pairwise

from copter_frontends.traffic.errors import NetworkError
from copter_frontends.traffic.raw import RawLink, RawNetwork, capacity_in_mbit

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*#[^\n]*", re.DOTALL | re.MULTILINE)
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|(->|--|[\[\]{};,=])|([^\s\[\]{};,=\-]+(?:-(?![->])[^\s\[\]{};,=\-]*)*)')
_KEYWORDS = ("graph", "node", "edge", "subgraph")


def read_dot(text: str) -> RawNetwork:
    """Read a network; nodes of type ``host`` and their links are left out, because traffic is between switches."""
    tokens = [(word or mark or quoted, bool(mark)) for quoted, mark, word in _TOKEN.findall(_COMMENT.sub("", text))]
    opening = next((at for at, token in enumerate(tokens) if token == ("{", True)), None)
    if opening is None:
        raise NetworkError("there is no graph { ... }")
    kinds = [word.lower() for word, _ in tokens[:opening]]
    if not any(kind in ("graph", "digraph") for kind in kinds):
        raise NetworkError("it begins with neither graph nor digraph")
    raw, hosts = RawNetwork(directed="digraph" in kinds), set[str]()
    for names, facts in _statements(tokens[opening + 1 :]):
        if len(names) == 1 and facts.get("type") == "host":
            hosts.add(names[0])
        for name in names:
            if name not in raw.labels:
                raw.nodes.append(name)
                raw.labels[name] = name
        capacity = capacity_in_mbit(facts["capacity"]) if "capacity" in facts else None
        raw.links += [RawLink(u, v, capacity) for u, v in pairwise(names)]
    raw.nodes = [name for name in raw.nodes if name not in hosts]
    raw.links = [link for link in raw.links if link.source not in hosts and link.target not in hosts]
    return raw


def _statements(tokens: list[tuple[str, bool]]) -> list[tuple[list[str], dict[str, str]]]:
    """Yield (names along the edge, attributes) of every statement about nodes or edges."""
    found: list[tuple[list[str], dict[str, str]]] = []
    names: list[str] = []
    facts: dict[str, str] = {}
    at, joined = 0, False
    while at < len(tokens):
        word, mark = tokens[at]
        if mark and word in ("->", "--"):
            joined = True
        elif mark and word == "[":
            at = _attributes(tokens, at + 1, facts)
        elif mark and word == "=":  # an attribute of the graph, not a node
            names, at = [], at + 1
        elif not mark:
            if names and not joined:
                _end(found, names, facts)
                names, facts = [], {}
            names.append(word)
            joined = False
        if mark and word in (";", "}"):
            _end(found, names, facts)
            names, facts, joined = [], {}, False
        at += 1
    _end(found, names, facts)
    return found


def _end(found: list[tuple[list[str], dict[str, str]]], names: list[str], facts: dict[str, str]) -> None:
    if names and names[0].lower() not in _KEYWORDS:
        found.append((names, facts))


def _attributes(tokens: list[tuple[str, bool]], at: int, facts: dict[str, str]) -> int:
    """Read ``key=value`` pairs up to the closing bracket; returns its position."""
    key = ""
    while at < len(tokens) and tokens[at] != ("]", True):
        word, mark = tokens[at]
        if mark and word == "=" and at + 1 < len(tokens):
            facts[key] = tokens[at + 1][0]
            at += 1
        elif not mark:
            key = word
        at += 1
    if at == len(tokens):
        raise NetworkError("an attribute list is not closed by ]")
    return at
