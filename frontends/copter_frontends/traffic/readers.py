"""Networks from files: GraphML of the Topology Zoo, node-link JSON, DOT, SNDlib XML, and tables of arcs."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from copter_frontends.traffic.dot import read_dot
from copter_frontends.traffic.errors import NetworkError, NetworkFileError
from copter_frontends.traffic.network import Network
from copter_frontends.traffic.raw import RawLink, RawNetwork, capacity_in_mbit

CAPACITY_KEYS = ("capacity", "LinkSpeedRaw", "linkspeedraw")
BITS_KEYS = ("LinkSpeedRaw", "linkspeedraw")  # bit/s


def read_network(path: str | Path, default_capacity: float | None = None, strongest: bool = True) -> Network:
    """Read a network; the file name's ending determines the format.

    Parameters
    ----------
    path : path
        ``.graphml``, ``.json`` (node-link), ``.dot`` or ``.gv``, ``.xml`` (SNDlib), ``.csv`` (a
        table of source, target, capacity).
    default_capacity : float, optional
        Capacity of links for which the file has none. Without it such a link is an error.
    strongest : bool
        Whether to keep only the largest strongly connected component.

    Raises
    ------
    NetworkFileError
        If the file is missing or of another format, or a link has no capacity; the message names the link.
    """
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise NetworkFileError(f"{path}: unknown kind of file {path.suffix!r}: one of {', '.join(READERS)}")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise NetworkFileError(f"{path}: {error.strerror or error}") from error
    try:
        raw = reader(text)
    except NetworkError as error:
        raise NetworkFileError(f"{path}: {error}") from error
    except (ElementTree.ParseError, json.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise NetworkFileError(f"{path}: not a network as {path.suffix} files describe one: {error}") from error
    network = built(raw, path, default_capacity)
    try:
        return network.largest_component() if strongest else network
    except NetworkError as error:
        raise NetworkFileError(f"{path}: no two nodes reach each other ({error})") from error


def built(raw: RawNetwork, path: Path, default_capacity: float | None) -> Network:
    """Make a network from a reader's result: nodes are numbered, missing capacities get the default.

    Raises
    ------
    NetworkFileError
        If a link has an unknown end, or no finite capacity of at least zero.
    """
    place = {name: at for at, name in enumerate(raw.nodes)}
    links = []
    for link in raw.links:
        for end in (link.source, link.target):
            if end not in place:
                raise NetworkFileError(f"{path}: link {link.source} - {link.target}: there is no node {end!r}")
        capacity = link.capacity if link.capacity is not None else default_capacity
        if capacity is None:
            raise NetworkFileError(
                f"{path}: link {link.source} - {link.target} has no capacity: add one to the file, or give "
                "default_capacity"
            )
        if not (math.isfinite(capacity) and capacity >= 0.0):
            raise NetworkFileError(f"{path}: link {link.source} - {link.target} has capacity {capacity}")
        links.append((place[link.source], place[link.target], float(capacity)))
    position = None
    if raw.position:
        position = np.array([raw.position.get(name, (np.nan, np.nan)) for name in raw.nodes])
    try:
        return Network.from_links([raw.label(name) for name in raw.nodes], links, path.stem, raw.directed, position)
    except NetworkError as error:
        raise NetworkFileError(f"{path}: {error}") from error


def _graphml(text: str) -> RawNetwork:
    root = ElementTree.fromstring(text)
    space = root.tag[: root.tag.index("}") + 1] if root.tag.startswith("{") else ""
    graph = root.find(f"{space}graph")
    if graph is None:
        raise NetworkError("there is no <graph>")
    names = {key.get("id"): key.get("attr.name") for key in root.iter(f"{space}key")}

    def facts(element: ElementTree.Element) -> dict[str, str]:
        found = {names.get(data.get("key")): data.text for data in element.findall(f"{space}data")}
        return {key: value for key, value in found.items() if key and value}

    drawn_in_yed = any("yfiles" in word for key in root.iter(f"{space}key") for word in key.attrib)
    raw = RawNetwork(directed=graph.get("edgedefault") == "directed" and not drawn_in_yed)
    for node in graph.findall(f"{space}node"):
        name, own = str(node.get("id")), facts(node)
        raw.nodes.append(name)
        raw.labels[name] = own.get("label", name)
        if "Longitude" in own and "Latitude" in own:
            raw.position[name] = (float(own["Longitude"]), float(own["Latitude"]))
        drawn = next((part for part in node.iter() if part.tag.endswith("}Geometry")), None)
        if drawn is not None:  # yEd's coordinates, in which y grows downwards
            raw.position[name] = (float(drawn.get("x", "nan")), -float(drawn.get("y", "nan")))
    for edge in graph.findall(f"{space}edge"):
        own = facts(edge)
        raw.links.append(RawLink(str(edge.get("source")), str(edge.get("target")), _capacity(own)))
    return raw


def _capacity(facts: Mapping[str, Any]) -> float | None:
    for key in CAPACITY_KEYS:
        if facts.get(key) is not None:
            return float(facts[key]) / (1e6 if key in BITS_KEYS else 1.0)
    return None


def _node_link(text: str) -> RawNetwork:
    data = json.loads(text)
    if not isinstance(data, dict) or "nodes" not in data:
        raise NetworkError("no object with nodes and links")
    raw = RawNetwork(directed=bool(data.get("directed", False)))
    for node in data["nodes"]:
        name = str(node["id"])
        raw.nodes.append(name)
        raw.labels[name] = str(node.get("label", name))
        if "pos" in node:
            raw.position[name] = (float(node["pos"][0]), float(node["pos"][1]))
    for link in data["links"] if "links" in data else data["edges"]:
        raw.links.append(RawLink(str(link["source"]), str(link["target"]), _capacity(link)))
    return raw


def _sndlib(text: str) -> RawNetwork:
    root = ElementTree.fromstring(text)
    raw = RawNetwork(directed=False)

    def number(element: ElementTree.Element, tag: str) -> float | None:
        found = next((part.text for part in element.iter() if part.tag.rpartition("}")[2] == tag and part.text), None)
        return None if found is None else float(found)

    def word(element: ElementTree.Element, tag: str) -> str:
        found = next((part.text for part in element.iter() if part.tag.rpartition("}")[2] == tag and part.text), None)
        if found is None:
            raise NetworkError(f"{element.get('id')!r} has no <{tag}>")
        return found.strip()

    for element in root.iter():
        tag = element.tag.rpartition("}")[2]
        if tag == "node":
            name = str(element.get("id"))
            raw.nodes.append(name)
            x, y = number(element, "x"), number(element, "y")
            if x is not None and y is not None:
                raw.position[name] = (x, y)
        elif tag == "link":
            installed = [number(part, "capacity") for part in _parts(element, "preInstalledModule")]
            modules = [number(part, "capacity") for part in _parts(element, "addModule")]
            sizes = [size for size in (*installed, *modules) if size is not None]
            capacity = sizes[0] if sizes else None
            raw.links.append(RawLink(word(element, "source"), word(element, "target"), capacity))
    return raw


def _parts(element: ElementTree.Element, tag: str) -> list[ElementTree.Element]:
    return [part for part in element.iter() if part.tag.rpartition("}")[2] == tag]


def _table(text: str) -> RawNetwork:
    rows = list(csv.DictReader(text.splitlines()))
    if not rows or not {"source", "target"} <= set(rows[0]):
        raise NetworkError("no table of source, target, capacity")
    raw = RawNetwork(directed=True)
    ends = [(row["source"], row["target"]) for row in rows]
    every = {node for pair in ends for node in pair}
    numbered = all(node.isdigit() for node in every)
    raw.nodes = sorted(every, key=int) if numbered else list(dict.fromkeys(node for pair in ends for node in pair))
    for (source, target), row in zip(ends, rows, strict=True):
        capacity = row.get("capacity")
        raw.links.append(RawLink(source, target, None if not capacity else capacity_in_mbit(capacity)))
    return raw


READERS: dict[str, Callable[[str], RawNetwork]] = {
    ".graphml": _graphml,
    ".json": _node_link,
    ".dot": read_dot,
    ".gv": read_dot,
    ".xml": _sndlib,
    ".csv": _table,
}
"""The reader of each file name ending."""
