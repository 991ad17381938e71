"""Conventions of a simulation and a policy, as one value with named presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, get_args

from copter.runtime.errors import SettingsError

Profiling = Literal["oracle", "bootstrap", "projected", "none"]
Training = Literal["exact", "agent"]
Charge = Literal["allocation", "type_and_count", "type_and_shape"]
Shim = Literal["filled", "rounded", "exact"]

PROFILED_NODES: Mapping[str, int] = MappingProxyType({"v100": 5, "t4": 16, "a100": 2, "quad": 1, "rtx": 3})
"""Nodes of each type on which the public artifact measured its applications."""


@dataclass(frozen=True, slots=True)
class Semantics:
    """The conventions in which the papers' schedulers and their public simulators differ.

    Parameters
    ----------
    name : str
        Name of the preset, or of semantics derived from one.
    training : {"exact", "agent"}
        How jobs run. *exact*: at the goodput model's best rate, phase by phase, with exact progress and completion.
        *agent*: as in the public Sia simulator, with measured steps, epoch by epoch; each round and epoch the batch is
        chosen anew from the job's observations; times are whole seconds.
    profiling : {"oracle", "bootstrap", "projected", "none"}
        The policy's knowledge of a job's throughput. *oracle*: everything. *bootstrap*: one GPU of each type is
        profiled before the job joins; other sizes follow equation (3.1) until they have run. *projected*: nothing
        before the first run (a new job gets one GPU of any type, all alike), afterwards equation (3.1). *none*: nothing
        but what has run, type by type. The last three need *agent* training.
    profiling_s : float
        Seconds that bootstrap profiling takes, on one GPU of every type; the job waits and is charged for them.
    profiling_share : float or None
        Share of each type's GPUs (at least one GPU) that bootstrap profiling may occupy at a time, for whole rounds,
        measuring one job after another. None: profiling takes no GPUs, only time. Only for policies that support
        reservations.
    profiled_gpus : int
        Most GPUs of a type on which bootstrap profiling measures a job: 1, as in the thesis, or all powers of two up to
        this one, each for `profiling_s`.
    deja_vu : bool
        Whether a job of an application of which an earlier job has ended is not profiled: it knows what the earlier
        ones have measured on each type, and may start on the most GPUs that one of them had, times `growth` (thesis
        6.2). Needs *agent* training, and profiling other than *oracle*.
    charge : {"allocation", "type_and_count", "type_and_shape"}
        Changes that restart a job: any change of nodes, a change of GPU type or count, or a change of type or of the
        numbers of GPUs per node (in the nodes' order).
    pin_restoring : bool
        Whether jobs in checkpoint-restore keep their allocation.
    type_blind : bool
        Whether a job fits a single throughput model to its observations on all GPU types. Needs *agent* training.
    batch_limit : {"both", "policy"}
        Whether a job's own `max_batch_size` limits both the policy's estimate and the job, or only the estimate, while
        the job itself is limited by its application.
    projection_order : tuple of GPU type
        Type A of equation (3.1) is the first type in this order on which the job has run; other types follow in the
        cluster's order.
    max_gpus : int or None
        Most GPUs of a job; None: no limit but the mode's.
    max_nodes : mapping of GPU type to int
        Most nodes of a type that a job may have; other types have no limit.
    growth : int or None
        A job may get at most this many times the most GPUs that it has run on; it starts on the smallest configuration
        (thesis 3.3.1: exactly 1 GPU). None: no limit.
    decimals : int or None
        Number of decimals to which (r G)^p is rounded; None: no rounding.
    clip : float
        Largest value of (r G)^p.
    keep_positive : bool
        Whether every configuration on which a job can run has a positive value (S4), so that no job idles beside idle
        GPUs. False: the values are those of the formula.
    prefer_types : tuple of GPU type
        Order of types that breaks ties, by far less than a rounded digit. Empty: the solver breaks ties.
    prefer_stay : bool
        Whether ties go to the job's present allocation, by a little more than type preferences.
    prefer_few : bool
        Whether ties between sizes go to fewer GPUs, by as little as type preferences.
    shim : {"filled", "rounded", "exact"}
        How Sia makes a plan from the LP's solution. *filled*: round it, give remaining GPUs to idle jobs, and keep the
        last plan if that is worth more (S11 to S13). *rounded*: only round it, as in the thesis (4.4.1). *exact*: the
        integer optimum by HiGHS if the round's program is small (:mod:`copter_frontends.policies.sia.exact`).

    Raises
    ------
    SettingsError
        For an impossible value, or profiling that the training cannot supply.
    """

    name: str = "default"
    training: Training = "exact"
    profiling: Profiling = "oracle"
    profiling_s: float = 0.0
    profiling_share: float | None = None
    profiled_gpus: int = 1
    deja_vu: bool = False
    charge: Charge = "allocation"
    pin_restoring: bool = True
    type_blind: bool = False
    batch_limit: Literal["both", "policy"] = "both"
    projection_order: tuple[str, ...] = ()
    max_gpus: int | None = None
    max_nodes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    growth: int | None = None
    decimals: int | None = None
    clip: float = float("inf")
    keep_positive: bool = True
    prefer_types: tuple[str, ...] = ()
    prefer_stay: bool = False
    prefer_few: bool = False
    shim: Shim = "filled"

    def __post_init__(self) -> None:
        self._one_of("training", self.training, ("exact", "agent"))
        self._one_of("profiling", self.profiling, ("oracle", "bootstrap", "projected", "none"))
        self._one_of("charge", self.charge, get_args(Charge))
        self._one_of("shim", self.shim, get_args(Shim))
        self._one_of("batch_limit", self.batch_limit, ("both", "policy"))
        if self.training == "exact" and self.profiling != "oracle":
            raise SettingsError(
                f"profiling is {self.profiling!r}, which needs training='agent': "
                "jobs that train exactly report nothing of what they see"
            )
        if self.training == "exact" and self.type_blind:
            raise SettingsError("type_blind needs training='agent': jobs that train exactly learn nothing")
        if not 0 <= self.profiling_s < float("inf"):
            raise SettingsError(f"profiling_s is {self.profiling_s}, must be finite and >= 0 seconds")
        if self.profiling_share is not None and self.profiling != "bootstrap":
            raise SettingsError(f"profiling_share needs profiling='bootstrap', it is {self.profiling!r}")
        if self.profiling_share is not None and not 0 < self.profiling_share <= 1:
            raise SettingsError(f"profiling_share is {self.profiling_share}, must be above 0 and at most 1, or None")
        self._require_profiling()
        for what, value in (("max_gpus", self.max_gpus), ("growth", self.growth)):
            if value is not None and value < 1:
                raise SettingsError(f"{what} is {value}, must be 1 or more, or None for no limit")
        if self.decimals is not None and not 0 <= self.decimals <= 12:
            raise SettingsError(f"decimals is {self.decimals}, must be 0 to 12, or None")
        if not self.clip > 0:
            raise SettingsError(f"clip is {self.clip}, must be > 0")

    def _require_profiling(self) -> None:
        """Raise SettingsError where more is profiled, or remembered, than the profiling can supply."""
        if self.profiled_gpus < 1 or self.profiled_gpus & (self.profiled_gpus - 1):
            raise SettingsError(f"profiled_gpus is {self.profiled_gpus}, must be a power of two")
        if self.profiled_gpus > 1 and (self.profiling != "bootstrap" or self.profiling_share is not None):
            raise SettingsError(
                f"profiled_gpus is {self.profiled_gpus}, which needs profiling='bootstrap' without profiling_share"
            )
        if self.deja_vu and (self.training == "exact" or self.profiling == "oracle"):
            raise SettingsError("deja_vu needs training='agent' and profiling other than 'oracle', where all is known")

    @property
    def profiling_runs(self) -> tuple[int, ...]:
        """GPUs of each run of bootstrap profiling on a type."""
        return tuple(2**k for k in range(self.profiled_gpus.bit_length()))

    @staticmethod
    def _one_of(what: str, value: str, known: tuple[str, ...]) -> None:
        if value not in known:
            raise SettingsError(f"{what} is {value!r}, must be one of {', '.join(known)}")

    @property
    def limits_gpus(self) -> bool:
        """Whether a job's allowed GPUs change while it runs."""
        return self.growth is not None


DEFAULT = Semantics()
"""Jobs train exactly, the policy knows their goodput, and every change of nodes restarts a job."""

SIA_ARTIFACT = Semantics(
    name="sia-artifact",
    training="agent",
    profiling="projected",
    charge="type_and_count",
    batch_limit="policy",
    projection_order=("t4", "a100", "rtx"),
    max_gpus=64,
    max_nodes=PROFILED_NODES,
    growth=2,
    decimals=2,
    clip=3000.0,
    keep_positive=False,
    prefer_types=("rtx", "t4", "a100"),  # the types on which new jobs start in the public simulator
    prefer_stay=True,
    prefer_few=True,
    shim="exact",
)
"""The conventions of the Sia artifact's public simulator (siasosp23/artifacts, commit aaf7a0d)."""

BOOTSTRAP_S = 20.0
"""Seconds of profiling a new job on one GPU of each type (thesis, 3.3.2)."""

SIA_THESIS = replace(
    SIA_ARTIFACT,
    name="thesis",
    profiling="bootstrap",
    profiling_s=BOOTSTRAP_S,
    projection_order=(),
    max_nodes=MappingProxyType({"quad": 1}),  # measured on one node only
    decimals=None,
    clip=float("inf"),
    shim="filled",
)
"""Sia as chapter 3 of the thesis describes it.

Jobs are profiled on one GPU of each type, and later observations refine the models (3.3.2). Jobs start on one GPU and
at most double. Plans are the rounded LP, without branch and bound. Points that the chapter leaves open are as in the
public simulator: how a job trains, ties, and that a change of type or count restarts it.
"""

PRESETS: Mapping[str, Semantics] = MappingProxyType({s.name: s for s in (DEFAULT, SIA_ARTIFACT, SIA_THESIS)})
"""Presets by their names on the command line."""
