"""POP with client splitting: where the pieces of a demand go, and the flows that its authors published."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pytest
from traffic_cases import needs_data

from copter_frontends.traffic import Network, Paths, TrafficFormulation, make_paths
from copter_frontends.traffic.published import instances, table

baselines = pytest.importorskip("copter_frontends.traffic.baselines")

WITHIN = 0.05
"""Of a published flow: the parts are random, and theirs are not known. Measured on all: 0.012 at most."""


@pytest.mark.parametrize("parts", [2, 4, 7])
def test_pieces_of_a_demand_go_to_different_parts(parts: int) -> None:
    pair = np.repeat(np.arange(60), np.arange(60) % 12)  # 0 to 11 pieces of each
    found = baselines.dealt(np.random.default_rng(3).permutation(pair), parts, np.random.default_rng(1))
    assert set(found.tolist()) == set(range(parts))
    order = np.random.default_rng(3).permutation(pair)
    for each in range(60):
        own = np.bincount(found[order == each], minlength=parts)
        assert own.max() - own.min() <= 1
    assert len(np.unique(np.bincount(found, minlength=parts))) > 1  # each demand is dealt by itself


def test_a_split_demand_has_its_link_to_itself() -> None:
    """Four links, each with one demand of its capacity: split in four, all of it fits, whatever the parts."""
    network = Network.from_links([str(node) for node in range(8)], [(2 * i, 2 * i + 1, 8.0) for i in range(4)], "lines")
    paths = make_paths(network, np.array([(2 * i, 2 * i + 1) for i in range(4)]))
    for seed in range(5):
        flows, *_ = baselines.Pop(paths, np.full(4, 8.0), parts=4, split=3.0, seed=seed).solve(None)
        assert flows.sum() == pytest.approx(32.0)


def test_pieces_are_added_to_the_nearest_number() -> None:
    pair, size = baselines.split_demands(np.array([1.0, 2.0, 4.0]), 0.5)  # 1.5 pieces more: two
    assert len(pair) == 5
    assert size.sum() == 7.0


@lru_cache(maxsize=1)
def demands_of(topology: str, model: str, scale: float, seed: int) -> tuple[Paths, np.ndarray]:
    (one,) = (
        each
        for each in instances("total")
        if (each.topology, each.model, each.scale, each.seed) == (topology, model, scale, seed)
    )
    matrix = one.demands()
    paths = make_paths(one.network(), np.argwhere(matrix > 0.0))
    return paths, paths.demands_of(matrix)


def judge_published(row: dict[str, str]) -> None:
    paths, demands = demands_of(row["topology"], row["model"], float(row["scale"]), int(row["seed"]))
    flows, *_ = baselines.Pop(paths, demands, int(row["parts"]), float(row["client_split"])).solve(None)
    assert flows.sum() == pytest.approx(float(row["value"]), rel=WITHIN), row


def published(*topologies: str) -> Iterator[dict[str, str]]:
    for row in table("results_pop.csv"):
        if row["topology"] in topologies and (row["objective"], row["split_method"]) == ("total_flow", "random"):
            yield row


@needs_data
@pytest.mark.parametrize("split", ["0.0", "0.25", "0.75", "1.0"])
@pytest.mark.parametrize("scale", ["32", "128"])
def test_published_flows_where_splitting_counts(scale: str, split: str) -> None:
    """Large demands between few pairs: without splitting a fifth of the flow, with it all."""
    rows = [
        row
        for row in published("GtsCe")
        if (row["model"], row["scale"], row["client_split"]) == ("poisson-high-intra", scale, split)
    ]
    assert rows
    for row in rows:
        judge_published(row)


def dealt_alone(pair: np.ndarray, parts: int, rng: np.random.Generator) -> np.ndarray:
    """Each piece by itself, as in the authors' second rule ("random2"): two of a demand may meet in a part."""
    return rng.integers(parts, size=len(pair))


@pytest.mark.long
@needs_data
@pytest.mark.parametrize("topology", ["GtsCe", "UsCarrier", "Cogentco"])
def test_every_published_flow_of_random_parts(topology: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a split of a tenth the published flows are those of the second rule: by the first they are 4 to 10% more."""
    rows = sorted(published(topology), key=lambda row: (row["model"], row["scale"], row["seed"]))
    assert len(rows) > 50
    own = baselines.dealt
    for row in rows:
        monkeypatch.setattr(baselines, "dealt", dealt_alone if row["client_split"] == "0.1" else own)
        judge_published(row)


def concurrent(paths: Paths, demands: np.ndarray, parts: int, split: float, seed: int) -> float:
    """POP's concurrent flow: the least of the parts', each with its share of every link."""
    pair, size = baselines.split_demands(demands, split)
    part = baselines.dealt(pair, parts, np.random.default_rng(seed))
    least = 1.0
    for k in range(parts):
        own, place = np.unique(pair[part == k], return_inverse=True)
        wanted = parts * np.bincount(place, size[part == k], len(own))  # as much as a part of the links
        least = min(least, TrafficFormulation(paths.of_pairs(own), wanted, "concurrent").plan().objective)
    return least


@pytest.mark.long
@needs_data
@pytest.mark.parametrize("topology", ["GtsCe", "UsCarrier"])
def test_published_concurrent_flows_are_among_those_of_random_parts(topology: str) -> None:
    """The least of sixteen random parts varies with the draw by a tenth, so the published one is one of several."""
    known = {(each.topology, each.model, each.scale, each.seed): each for each in instances("concurrent")}
    rows = [r for r in table("results_pop.csv") if (r["topology"], r["objective"]) == (topology, "max_concurrent_flow")]
    assert len(rows) == 20
    for row in rows:
        one = known[topology, row["model"], float(row["scale"]), int(row["seed"])]
        matrix = one.demands()
        paths = make_paths(one.network(), np.argwhere(matrix > 0.0))
        demands, published = paths.demands_of(matrix), float(row["value"])
        given = int(row["parts"]), float(row["client_split"])
        found = [concurrent(paths, demands, *given, seed) for seed in range(1 if published == 1.0 else 8)]
        assert (1 - WITHIN) * min(found) <= published <= (1 + WITHIN) * max(found), row
