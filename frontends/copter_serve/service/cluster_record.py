"""Settings of a cluster: its GPU types, its policy, the timing of its rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from copter_frontends.vocabulary import Cluster
from copter_serve.service.fields import at, count, identifier, mapping, number
from copter_serve.service.policy_names import POLICY_NAMES, RATED
from copter_serve.service.problems import invalid

FIELDS = frozenset({"types", "policy", "round_s", "react_s", "deadline_s", "restart_penalty"})
MOST_NODES = 200_000  # most nodes of a cluster


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """One cluster's settings.

    Attributes
    ----------
    types : mapping of GPU type to (nodes, GPUs per node)
        Nodes at creation; deltas add and remove nodes, but not types.
    policy : str
    round_s : float
        Seconds between plans if nothing changes.
    react_s : float
        Least seconds between two plans if something changes.
    deadline_s : float
        Time limit of a plan, in seconds.
    restart_penalty : float
        Cost of a change under the policy "allocation", as a share of the option's worth, at least 0 and below 1.
    """

    types: Mapping[str, tuple[int, int]]
    policy: str = "allocation"
    round_s: float = 60.0
    react_s: float = 1.0
    deadline_s: float = 30.0
    restart_penalty: float = 0.1

    @classmethod
    def read(cls, value: Any) -> ClusterRecord:
        """Read the settings from a JSON document.

        Raises
        ------
        Problem
            Of status 422, if a field is missing, unknown or out of its range.
        """
        told = mapping("", value, FIELDS, ("types",))
        types = _read_types("/types", told["types"])
        policy = told.get("policy", "allocation")
        if policy not in POLICY_NAMES:
            raise invalid("/policy", "is no policy of the service", f"take one of {', '.join(POLICY_NAMES)}")
        penalty = number("/restart_penalty", told.get("restart_penalty", 0.1), least=0.0)
        if penalty >= 1.0:
            raise invalid("/restart_penalty", f"is {penalty:g}, must be from 0 to below 1")
        return cls(
            types=types,
            policy=policy,
            round_s=number("/round_s", told.get("round_s", 60.0), above=0.0),
            react_s=number("/react_s", told.get("react_s", 1.0), least=0.0),
            deadline_s=number("/deadline_s", told.get("deadline_s", 30.0), above=0.0),
            restart_penalty=penalty,
        )

    @property
    def rated(self) -> bool:
        """Whether the policy uses the throughputs that jobs bring, instead of models of applications."""
        return self.policy in RATED

    def document(self) -> dict[str, Any]:
        """Return the settings as a JSON document."""
        return {
            "types": {kind: {"nodes": nodes, "gpus_per_node": size} for kind, (nodes, size) in self.types.items()},
            "policy": self.policy,
            "round_s": self.round_s,
            "react_s": self.react_s,
            "deadline_s": self.deadline_s,
            "restart_penalty": self.restart_penalty,
        }

    def cluster(self) -> Cluster:
        """Return the cluster as it was created."""
        return Cluster.of(self.types)


def _read_types(where: str, value: Any) -> dict[str, tuple[int, int]]:
    types: dict[str, tuple[int, int]] = {}
    for kind, entry in mapping(where, value).items():
        place = at(where, kind)
        told = mapping(place, entry, ("nodes", "gpus_per_node"), ("nodes", "gpus_per_node"))
        types[identifier(place, kind)] = (
            count(f"{place}/nodes", told["nodes"], 0),
            count(f"{place}/gpus_per_node", told["gpus_per_node"]),
        )
    if not any(nodes for nodes, _ in types.values()):
        raise invalid(where, "there is no GPU", "give at least one type a node; types may have none for now")
    if sum(nodes for nodes, _ in types.values()) > MOST_NODES:
        raise invalid(where, f"there are more than {MOST_NODES} nodes", "make several clusters")
    return types
