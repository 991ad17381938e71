"""Random clusters of Kueue, their documents, and the truth about them."""

from __future__ import annotations

import random
from typing import Any

from copter_serve.views.kueue import kueue_view
from copter_serve.views.view import ClusterView
from tests.adversary.view_truth import TrueJob, Truth, Use

GROUP = "kueue.x-k8s.io"
GPU = "nvidia.com/gpu"
NOW = 1_795_860_000.0
CAME = "2026-11-24T10:00:{:02d}Z"
FLAVORS = ("a100", "t4")
TAINTED = {"key": "t4", "value": "x", "effect": "NoSchedule"}


def kueue(seed: int) -> tuple[ClusterView, Truth]:
    """Return the view of a random Kueue's documents, and the truth."""
    draw = random.Random(seed)
    version = draw.choice(("v1beta1", "v1beta2"))

    def document(kind: str, name: str, spec: Any, status: Any = None, **meta: Any) -> Any:
        space, _, short = name.rpartition("/")
        return {
            "apiVersion": f"{GROUP}/{version}",
            "kind": kind,
            "spec": spec,
            "status": status or {},
            "metadata": {
                "name": short,
                **({"namespace": space} if space else {}),
                "creationTimestamp": CAME.format(0),
                **meta,
            },
        }

    tainted = draw.random() < 0.4
    documents = [
        document(
            "ResourceFlavor",
            name,
            {"nodeLabels": {"type": name}, **({"nodeTaints": [TAINTED]} if tainted and name == "t4" else {})},
        )
        for name in FLAVORS
    ]
    counts_pods = draw.random() < 0.4
    cohort = draw.random() < 0.7
    quotas: dict[tuple[str, str, str], tuple[int, int | None, int | None]] = {}
    state: dict[str, bool | None] = {}
    strict: set[str] = set()
    for queue in ("red", "blue"):
        flavors = []
        for flavor in FLAVORS[: draw.randint(1, 2)]:
            resources = []
            for resource in (GPU, "cpu", *(["pods"] if counts_pods else [])):
                most = {GPU: 6, "cpu": 16, "pods": 4}[resource]
                nominal = draw.randint(0, most)
                borrow = draw.choice((None, None, draw.randint(0, 3))) if cohort else None
                lend = draw.choice((None, None, draw.randint(0, nominal))) if cohort else None
                quotas[queue, flavor, resource] = nominal, borrow, lend
                told = {"name": resource, "nominalQuota": str(nominal)}
                told |= {"borrowingLimit": str(borrow)} if borrow is not None else {}
                resources.append(told | ({"lendingLimit": str(lend)} if lend is not None else {}))
            flavors.append({"name": flavor, "resources": resources})
        spec: dict[str, Any] = {
            "namespaceSelector": {},
            "resourceGroups": [
                {"coveredResources": [each["name"] for each in flavors[0]["resources"]], "flavors": flavors}
            ],
        }
        if cohort:
            spec["cohort" if version == "v1beta1" else "cohortName"] = "lab"
        trick = draw.choice(("",) * 10 + ("stop", "inactive", "checks", "namespace", "strict", "strict"))
        state[queue] = {"": True, "strict": True, "checks": None}.get(trick, False)
        status = {
            "conditions": [
                {"type": "Active", "status": "False" if trick == "inactive" else "True", "reason": "FlavorNotFound"}
            ]
        }
        if trick == "stop":
            spec["stopPolicy"] = "Hold"
        elif trick == "checks":
            spec["admissionChecks"] = ["prov"]
        elif trick == "namespace":
            spec["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "elsewhere"}}
        elif trick == "strict":
            spec["queueingStrategy"] = "StrictFIFO"
            strict.add(queue)
        documents += [
            document("ClusterQueue", queue, spec, status),
            document("LocalQueue", f"{queue}/main", {"clusterQueue": queue}),
        ]
    used: Use = {}
    admits = _admission(quotas, cohort, used)
    jobs: dict[str, TrueJob] = {}
    order: dict[str, list[tuple[int, int, str]]] = {"red": [], "blue": []}
    for at in range(draw.randint(1, 7)):
        _workload(draw, at, document, documents, quotas, counts_pods, tainted, used, admits, jobs, state, order)
    for queue in strict:
        before = ""
        for _, _, name in sorted(order[queue]):
            jobs[name].after = before
            if before and jobs[before].may is not True:
                jobs[name].may = None if jobs[name].may else jobs[name].may
            before = name
    view = kueue_view(documents, NOW)
    for job in jobs.values():
        job.units = max(
            (
                sum(amount for (_, _, name), amount in _joined(each).items() if name in view.counted)
                for each in _products(job.choices)
            ),
            default=0,
        )
    return view, Truth({}, jobs, {}, admits)


def _products(choices: list[list[Use]]) -> list[list[Use]]:
    found: list[list[Use]] = [[]]
    for stage in choices:
        found = [[*before, each] for before in found for each in stage]
    return found


def _joined(uses: list[Use]) -> Use:
    total: Use = {}
    for each in uses:
        for share, amount in each.items():
            total[share] = total.get(share, 0) + amount
    return total


def _admission(quotas: Any, cohort: bool, used: Use) -> Any:
    """Return whether some more usage keeps to all quotas of which it uses more than nothing."""

    def admits(more: Use) -> bool:
        for flavor, resource in {(flavor, resource) for (_, flavor, resource), amount in more.items() if amount > 0}:
            pool = passed = 0
            grown = False
            for queue in ("red", "blue"):
                share = queue, flavor, resource
                nominal, borrow, lend = quotas.get(share, (0, None, None))
                now, extra = used.get(share, 0) + more.get(share, 0), more.get(share, 0)
                if extra and share not in quotas:
                    return False
                if not cohort:
                    if extra and now > nominal:
                        return False
                    continue
                kept = 0 if lend is None else max(0, nominal - lend)
                if extra and borrow is not None and now > nominal + borrow:
                    return False
                pool += nominal - kept
                passed += max(0, now - kept)
                grown = grown or (extra > 0 and now > kept)
            if cohort and grown and passed > pool:
                return False
        return True

    return admits


def _workload(
    draw: random.Random,
    at: int,
    document: Any,
    documents: Any,
    quotas: Any,
    counts_pods: bool,
    tainted: bool,
    used: Use,
    admits: Any,
    jobs: dict[str, TrueJob],
    state: Any,
    order: Any,
) -> None:
    queue = draw.choice(("red", "blue"))
    name = f"{queue}/w{at}"
    sets, choices = [], []
    for which in range(draw.choice((1, 1, 2))):
        count, gpus, cpus = draw.randint(1, 3), draw.choice((0, 1, 2)), draw.choice((1, 2, 3))
        pod: dict[str, Any] = {
            "containers": [
                {"name": "c", "resources": {"requests": {"cpu": str(cpus), **({GPU: str(gpus)} if gpus else {})}}}
            ]
        }
        trick = draw.randrange(6)
        if trick == 0:
            pod["overhead"] = {"cpu": "1"}
            cpus += 1
        elif trick == 1:
            pod["initContainers"] = [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}]
            cpus += 1
        elif trick == 2:
            pod["initContainers"] = [{"name": "i", "resources": {"requests": {"cpu": "5"}}}]
            cpus = 5
        reach = set(FLAVORS)
        if draw.random() < 0.3:
            kind = draw.choice((*FLAVORS, "h100"))
            pod["nodeSelector"] = {"type": kind, "zone": "x"}  # no flavor has a label zone
            reach &= {kind}
        tolerates = draw.random() < 0.5
        if tolerates:
            pod["tolerations"] = [
                draw.choice(
                    (
                        {"key": "t4", "operator": "Exists"},
                        {"operator": "Exists"},
                        {"key": "t4", "value": "x", "effect": "NoSchedule"},
                    )
                )
            ]
        if tainted and not tolerates:
            reach -= {"t4"}
        sets.append({"name": f"s{which}", "count": count, "template": {"spec": pod}})
        own = [flavor for flavor in FLAVORS if (queue, flavor, "cpu") in quotas]
        stage = []
        for flavor in own:
            # a selector on a label that no flavor of the queue has says nothing; here all have the label
            if flavor in reach:
                use = {(queue, flavor, "cpu"): cpus * count, **({(queue, flavor, GPU): gpus * count} if gpus else {})}
                stage.append(use | ({(queue, flavor, "pods"): count} if counts_pods else {}))
        choices.append(stage)
    priority = draw.choice((0, 0, 5))
    spec = {"queueName": "main", "podSets": sets, "priority": priority}
    chosen = _joined([draw.choice(stage) for stage in choices]) if all(choices) else None
    if draw.random() < 0.4 and chosen is not None and admits(chosen):
        taken = []
        for podset, stage in zip(sets, choices, strict=True):
            use = next(each for each in stage)
            taken.append(
                {
                    "name": podset["name"],
                    "count": podset["count"],
                    "flavors": {name: flavor for (_, flavor, name) in use},
                    "resourceUsage": {name: str(amount) for (_, _, name), amount in use.items()},
                }
            )
        first = _joined([stage[0] for stage in choices])
        if admits(first):
            for share, amount in first.items():
                used[share] = used.get(share, 0) + amount
            status = {
                "admission": {"clusterQueue": queue, "podSetAssignments": taken},
                "conditions": [
                    {"type": kind, "status": "True", "lastTransitionTime": CAME.format(1)}
                    for kind in ("QuotaReserved", "Admitted")
                ],
            }
            documents.append(document("Workload", name, spec, status))
            return
    may: bool | None = state[queue]
    meta: dict[str, Any] = {"creationTimestamp": CAME.format(at + 2)}
    status: dict[str, Any] = {}
    trick = draw.choice(("",) * 8 + ("gate", "active", "requeue", "past", "requeued", "gone"))
    queued = True
    if trick == "gate":
        meta["annotations"] = {f"{GROUP}/admission-gated-by": "example.com/x"}
    elif trick == "active":
        spec["active"] = False
    elif trick == "requeue":
        status["requeueState"] = {"count": 1, "requeueAt": "2027-01-01T00:00:00Z"}
    elif trick == "past":
        status["requeueState"] = {"count": 1, "requeueAt": "2026-01-01T00:00:00Z"}
    elif trick == "requeued":
        status["conditions"] = [
            {"type": "Requeued", "status": "False", "reason": "AdmissionCheck", "lastTransitionTime": CAME.format(1)}
        ]
    elif trick == "gone":
        meta["deletionTimestamp"] = CAME.format(9)
    if trick not in ("", "past"):
        may, queued = False, False
    documents.append(document("Workload", name, spec, status, **meta))
    fits = all(choices)
    jobs[name] = TrueJob([], may if fits else False, choices=choices if fits else [])
    if queued and state[queue] is not False:
        order[queue].append((-priority, at, name))
