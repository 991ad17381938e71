"""WAN traffic engineering by path flows (thesis chapter 5; docs/method/traffic.md)."""

from copter_frontends.traffic.demands import MODELS, DemandConstants, demand_matrix
from copter_frontends.traffic.errors import DemandError, NetworkError, NetworkFileError, PathError, UnknownPairError
from copter_frontends.traffic.fairness import FairPlan, max_min_fair
from copter_frontends.traffic.formulation import TrafficFormulation
from copter_frontends.traffic.matrices import read_matrices
from copter_frontends.traffic.network import Network
from copter_frontends.traffic.paths import Paths, make_paths
from copter_frontends.traffic.plan import OBJECTIVES, FlowPlan, TrafficScheme
from copter_frontends.traffic.readers import read_network
from copter_frontends.traffic.schemes import make_scheme
from copter_frontends.traffic.shim import feasible_flows
from copter_frontends.traffic.simulation import TrafficResult, simulate_traffic
from copter_frontends.traffic.splits import Splits, router_splits
from copter_frontends.traffic.streams import STREAMS, Round

__all__ = [
    "MODELS",
    "OBJECTIVES",
    "STREAMS",
    "DemandConstants",
    "DemandError",
    "FairPlan",
    "FlowPlan",
    "Network",
    "NetworkError",
    "NetworkFileError",
    "PathError",
    "Paths",
    "Round",
    "Splits",
    "TrafficFormulation",
    "TrafficResult",
    "TrafficScheme",
    "UnknownPairError",
    "demand_matrix",
    "feasible_flows",
    "make_paths",
    "make_scheme",
    "max_min_fair",
    "read_matrices",
    "read_network",
    "router_splits",
    "simulate_traffic",
]
