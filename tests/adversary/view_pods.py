"""Random clusters of Volcano and KAI, their documents, and the truth about them."""

from __future__ import annotations

import random
from typing import Any

from copter_serve.views.pod_groups import pod_group_view
from copter_serve.views.view import ClusterView
from tests.adversary.view_truth import PART, TrueJob, TrueNode, TruePod, Truth

GPU = "nvidia.com/gpu"
CAME = "2026-11-24T10:00:00Z"
NAMES = {"cpu": "cpu", "mem": "memory", "gpu": GPU, "pods": "pods"}


def _quantity(resource: str, amount: int) -> str:
    return {"cpu": f"{amount * 1000}m", "mem": f"{amount}Gi"}.get(resource, str(amount))


def volcano(seed: int) -> tuple[ClusterView, Truth]:
    """Return the view of a random Volcano cluster's documents, and the truth."""
    return _drawn("volcano", random.Random(seed))


def kai(seed: int) -> tuple[ClusterView, Truth]:
    """Return the view of a random KAI snapshot, and the truth."""
    return _drawn("kai", random.Random(seed))


def _drawn(source: str, draw: random.Random) -> tuple[ClusterView, Truth]:
    nodes: dict[str, TrueNode] = {}
    labels: dict[str, dict[str, str]] = {}
    taints: dict[str, list[str]] = {}
    kinds: dict[str, list[Any]] = {"Node": [], "Queue": [], "PodGroup": [], "Pod": [], "PriorityClass": []}
    device = GPU if source == "kai" else draw.choice((GPU, GPU, "nvidia.com/gtx-1080-ti", "amd.com/gpu"))
    for at in range(draw.randint(1, 3)):
        name = f"n{at}"
        labels[name] = {"kubernetes.io/hostname": name, "type": draw.choice(("a100", "t4")), "rank": str(at)}
        taints[name] = draw.choice(([], [], [], ["dedicated"]))
        trick = draw.choice(("",) * 7 + ("unschedulable", "unready", "pressure", "unknown"))
        free = {
            "cpu": draw.choice((4, 16)),
            "mem": draw.choice((16, 64)),
            "gpu": draw.choice((0, 1, 2, 4)),
            "pods": draw.choice((3, 110)),
        }
        node = TrueNode(free, trick in ("", "pressure"))
        if source == "kai" and free["gpu"]:
            node.gpus, node.gpu_memory = [PART] * free["gpu"], 40000
            labels[name]["nvidia.com/gpu.memory"] = "40050"
        nodes[name] = node
        told = [{"key": key, "value": "x", "effect": "NoSchedule"} for key in taints[name]]
        if trick == "pressure":
            taints[name] = [*taints[name], "pressure"]
        kinds["Node"].append(
            {
                "kind": "Node",
                "apiVersion": "v1",
                "metadata": {"name": name, "labels": labels[name]},
                "spec": {
                    "taints": told + draw.choice(([], [{"key": "soft", "effect": "PreferNoSchedule"}])),
                    **({"unschedulable": True} if trick == "unschedulable" else {}),
                },
                "status": {
                    "allocatable": {
                        (device if key == "gpu" else NAMES[key]): _quantity(key, value) for key, value in free.items()
                    },
                    "conditions": [
                        {"type": "Ready", "status": {"unready": "False", "unknown": "Unknown"}.get(trick, "True")},
                        {"type": "MemoryPressure", "status": "True" if trick == "pressure" else "False"},
                    ],
                },
            }
        )
    limits, queues = _queues(source, draw, kinds, device)
    truth = Truth(nodes, {}, limits)
    for at in range(draw.randint(1, 6)):
        _group(source, draw, at, kinds, truth, queues, labels, taints, device)
    draw.shuffle(kinds["Pod"])
    view = pod_group_view(source, kinds)
    for job in truth.jobs.values():
        if view.counted == ("cpu",):
            job.units = sum(pod.need["cpu"] for pod in job.pods) * PART
    return view, truth


def _queues(
    source: str, draw: random.Random, kinds: Any, device: str
) -> tuple[dict[str, int], dict[str, tuple[list[str], bool]]]:
    """Draw two queues, of which one may be closed, below a parent; return limits, and each queue's limits and state."""
    limits: dict[str, int] = {}
    queues: dict[str, tuple[list[str], bool]] = {}
    parent = draw.random() < 0.4
    names = ["red", "blue", *(["lab"] if parent else [])]
    of: dict[str, list[str]] = {}
    for name in names:
        most: dict[str, int] = {}
        for resource, values in (("gpu", (1, 2, 4)), ("cpu", (4, 12)), ("mem", (16, 40))):
            if draw.random() < 0.4:
                most[resource] = draw.choice(values)
        state = "Open" if source == "kai" or draw.random() < 0.85 else draw.choice(("Closed", "Closing"))
        spec: dict[str, Any] = {}
        if source == "volcano":
            spec["capability"] = {
                (device if key == "gpu" else NAMES[key]): _quantity(key, value) for key, value in most.items()
            }
            spec["weight"] = 1
        else:
            unit = {"gpu": 1, "cpu": 1000, "mem": 1}
            spec["resources"] = {
                told: {
                    "limit": most[key] * unit[key] * (1073.741824 if key == "mem" else 1) if key in most else -1,
                    "quota": -1,
                    "overQuotaWeight": 1,
                }
                for key, told in (("gpu", "gpu"), ("cpu", "cpu"), ("mem", "memory"))
            }
        if parent and name != "lab":
            spec["parentQueue" if source == "kai" else "parent"] = "lab"
        limits |= {f"{name} {key}": value * (PART if key == "gpu" else 1) for key, value in most.items()}
        of[name] = [f"{name} {key}" for key in most]
        kinds["Queue"].append(
            {
                "kind": "Queue",
                "apiVersion": "x/v1",
                "metadata": {"name": name},
                "spec": spec,
                "status": {"state": state},
            }
        )
        queues[name] = of[name], state == "Open"
    if parent:
        for name in ("red", "blue"):
            queues[name] = of[name] + of["lab"], queues[name][1] and queues["lab"][1]
    queues.pop("lab", None)
    return limits, queues


def _group(
    source: str,
    draw: random.Random,
    at: int,
    kinds: Any,
    truth: Truth,
    queues: Any,
    labels: Any,
    taints: Any,
    device: str,
) -> None:
    """Draw a group with equal pods, of which some run."""
    name, queue = f"g{at}", draw.choice(sorted(queues))
    count = draw.choice((1, 1, 2, 3))
    least = draw.randint(1, count)
    gpus = draw.choice((0, 1, 1, 2))
    need = {"cpu": draw.choice((1, 2, 4)), "mem": draw.choice((1, 8, 30)), "gpu": gpus, "pods": 1}
    part = memory = 0
    parts = 1
    notes: dict[str, str] = {}
    if source == "kai" and draw.random() < 0.4:
        need["gpu"] = gpus = 0
        if draw.random() < 0.6:
            part = draw.choice((25, 50, 60, 90))
            notes["gpu-fraction"] = f"{part / PART:g}"
        else:
            memory = draw.choice((10000, 20000, 36000))
            notes["gpu-memory"] = str(memory)
        if draw.random() < 0.2:
            parts = 2
            notes["gpu-fraction-num-devices"] = "2"
    spec, reach, unclear = _spec(draw, need, labels, taints, device)
    waiting_only = draw.random() < 0.6
    placed = 0
    used = part or (-(-memory * PART // 40000) if memory else 0)
    for which in range(count):
        node = _place(draw, need, used, parts, truth, reach) if not waiting_only else None
        groups: dict[str, str] = {}
        if node is not None:
            placed += 1
            true = truth.nodes[node]
            for resource, amount in need.items():
                true.free[resource] -= amount
            for _ in range(need["gpu"] if true.gpus else 0):
                true.gpus[true.gpus.index(PART)] = 0
            if used:
                for gpu in [each for each, free in enumerate(true.gpus) if free >= used][:parts]:
                    true.gpus[gpu] -= used
                    groups[f"runai-gpu-group/{node}-{gpu}"] = f"{node}-{gpu}"
                if parts == 1:
                    groups = {"runai-gpu-group": next(iter(groups.values()))}
            for limit in queues[queue][0]:
                truth.limits[limit] -= _takes(limit, need, used * parts)
        kinds["Pod"].append(
            {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {
                    "name": f"{name}-{which}",
                    "namespace": "d",
                    "labels": groups,
                    "annotations": {"scheduling.k8s.io/group-name": name, **notes},
                },
                "spec": spec | ({"nodeName": node} if node is not None else {}),
                "status": {"phase": "Pending" if node is None else "Running"},
            }
        )
    phase = "Running" if placed >= least else draw.choice(("Pending", "Inqueue"))
    kinds["PodGroup"].append(
        {
            "kind": "PodGroup",
            "apiVersion": "x/v1",
            "metadata": {"name": name, "namespace": "d", "creationTimestamp": CAME},
            "spec": {"queue": queue, "minMember": least},
            "status": {"phase": phase},
        }
    )
    units = need["gpu"] * PART + used * parts

    def job(size: int, after: str = "") -> TrueJob:
        pods = [TruePod(dict(need), frozenset(reach), part, memory, parts) for _ in range(size)]
        takes = {limit: size * _takes(limit, need, used * parts) for limit in queues[queue][0]}
        return TrueJob(
            pods,
            (None if unclear else True) if queues[queue][1] else False,
            units=units * size,
            takes=takes,
            after=after,
        )

    gang = max(0, least - placed)
    if gang:
        truth.jobs[f"d/{name}"] = job(gang)
    # which of the equal pods come later, the view says: they are found by what is left
    for which in range(placed + gang, count):
        truth.jobs[f"d/{name}+{which}"] = job(1, f"d/{name}" if gang else "")


def _takes(limit: str, need: dict[str, int], parts: int) -> int:
    resource = limit.split()[1]
    return need["gpu"] * PART + parts if resource == "gpu" else need[resource]


def _place(
    draw: random.Random, need: dict[str, int], used: int, parts: int, truth: Truth, reach: set[str]
) -> str | None:
    fits = [
        name
        for name, node in truth.nodes.items()
        if name in reach
        and all(amount <= node.free[resource] for resource, amount in need.items())
        and (not used or sum(free >= used for free in node.gpus) >= parts)
        and (not node.gpus or sum(free == PART for free in node.gpus) >= need["gpu"])
    ]
    return draw.choice(fits) if fits else None


def _spec(
    draw: random.Random, need: dict[str, int], labels: Any, taints: Any, device: str
) -> tuple[dict[str, Any], set[str], bool]:
    """Draw a specification with this need; return the nodes that it admits, and whether it has what is not modelled."""
    requests = {
        (device if key == "gpu" else NAMES[key]): _quantity(key, value)
        for key, value in need.items()
        if key != "pods" and value
    }
    half = {key: value for key, value in requests.items() if key == "cpu"}
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "resources": draw.choice(({"requests": requests}, {"limits": requests}))}]
    }
    trick = draw.randrange(6)
    if trick == 0:
        spec["initContainers"] = [{"name": "i", "resources": {"requests": half}}]
    elif trick == 1 and need["cpu"] > 1:
        # a sidecar takes one of the CPUs
        rest = requests | {"cpu": _quantity("cpu", need["cpu"] - 1)}
        spec = {
            "containers": [{"name": "c", "resources": {"requests": rest}}],
            "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
        }
    elif trick == 2 and need["cpu"] > 1:
        spec = {
            "containers": [
                {"name": "c", "resources": {"requests": requests | {"cpu": _quantity("cpu", need["cpu"] - 1)}}}
            ],
            "overhead": {"cpu": "1000m"},
        }
    elif trick == 3 and need["cpu"] > 1:
        small = {key: value for key, value in requests.items() if key != "cpu"}
        spec = {
            "containers": [{"name": "c", "resources": {"requests": small}}],
            "initContainers": [{"name": "i", "resources": {"requests": half}}],
        }
    reach = set(labels)
    if draw.random() < 0.3:
        kind = draw.choice(("a100", "t4", "h100"))
        spec["nodeSelector"] = {"type": kind}
        reach = {name for name in reach if labels[name]["type"] == kind}
    if draw.random() < 0.25:
        operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        key = {"Gt": "rank", "Lt": "rank"}.get(operator, "type")
        values = {"Gt": ["0"], "Lt": ["1"], "Exists": [], "DoesNotExist": []}.get(operator, ["a100"])
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]
                }
            }
        }
        meets = {
            "In": lambda each: each["type"] == "a100",
            "NotIn": lambda each: each["type"] != "a100",
            "Exists": lambda each: True,
            "DoesNotExist": lambda each: False,
            "Gt": lambda each: int(each["rank"]) > 0,
            "Lt": lambda each: int(each["rank"]) < 1,
        }[operator]
        reach = {name for name in reach if meets(labels[name])}
    if draw.random() < 0.5:
        spec["tolerations"] = [
            draw.choice(
                (
                    {"key": "dedicated", "operator": "Equal", "value": "x", "effect": "NoSchedule"},
                    {"operator": "Exists"},
                    {"key": "dedicated", "operator": "Exists"},
                    {"key": "dedicated", "operator": "Equal", "value": "y"},
                    {"key": "other", "operator": "Exists"},
                )
            )
        ]
    given = spec.get("tolerations", [{}])[0]
    passes = {"dedicated"} if given.get("key") == "dedicated" and given.get("value") != "y" else set()
    if given == {"operator": "Exists"}:
        passes = {"dedicated", "pressure"}
    reach = {name for name in reach if passes.issuperset(taints[name])}
    unclear = draw.random() < 0.08
    if unclear:
        spec |= draw.choice(
            (
                {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
                {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
                {"resourceClaims": [{"name": "c"}]},
            )
        )
    return spec, reach, unclear
