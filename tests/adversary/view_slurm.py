"""Random Slurm clusters, their documents in the forms of 22.05, 24.11 and REST, and the truth about them."""

from __future__ import annotations

import random
from typing import Any

from copter_serve.views.slurm import view_of
from copter_serve.views.slurm_nodes import read_cluster
from copter_serve.views.view import ClusterView
from tests.adversary.view_truth import TrueJob, TrueNode, TruePod, Truth

NOW = 1_795_860_000
GOOD = (["IDLE"], ["MIXED"], ["IDLE", "CLOUD"], ["MIXED", "PLANNED"], ["IDLE", "DYNAMIC_NORM"])
BAD = (
    ["IDLE", "DRAIN"],
    ["DOWN"],
    ["DOWN", "NOT_RESPONDING"],
    ["MIXED", "DRAIN"],
    ["IDLE", "MAINTENANCE"],
    ["UNKNOWN"],
    ["IDLE", "RESERVED"],
    ["MIXED", "FAIL"],
    ["FUTURE"],
    ["IDLE", "POWERING_DOWN"],
    ["IDLE", "NOT_RESPONDING"],
    ["IDLE", "SOMETHING_NEW"],
    ["IDLE", "INVALID_REG"],
)
HOLDS = (
    "JobHeldUser",
    "JobHeldAdmin",
    "Dependency",
    "DependencyNeverSatisfied",
    "BeginTime",
    "Licenses",
    "ReqNodeNotAvail",
    "BadConstraints",
    "InvalidQOS",
    "QOSMaxGRESPerUser",
    "AssocGrpGRES",
    "Reservation",
    "PartitionDown",
    "JobArrayTaskLimit",
    "NodeDown",
    "SomethingNew",
    "MaxMemPerLimit",
    "AccountNotAllowed",
    "Cleaning",
)


def _number(form: str, value: int | None) -> Any:
    if form == "22.05":
        return value
    return {"set": value is not None, "infinite": False, "number": value or 0}


def slurm(seed: int) -> tuple[ClusterView, Truth]:
    """Return the view of a random cluster's documents, and the truth."""
    draw = random.Random(seed)
    form = draw.choice(("22.05", "24.11", "rest"))
    nodes: dict[str, TrueNode] = {}
    facts: dict[str, dict[str, Any]] = {}
    for at in range(draw.randint(1, 4)):
        name = f"n{at}"
        cpus, memory = draw.choice((4, 8, 16)), draw.choice((8000, 16000))
        kinds = draw.choice(({}, {"a100": 4}, {"a100": 2}, {"t4": 2}, {"a100": 2, "t4": 1}, {"": 4}))
        state = draw.choice(GOOD) if draw.random() < 0.75 else draw.choice(BAD)
        features = draw.sample(("fast", "big", "rack1", "ib"), draw.randint(0, 3))
        facts[name] = {
            "cpus": cpus,
            "mem": memory,
            "kinds": kinds,
            "state": state,
            "features": features,
            "used": {"cpu": 0, "mem": 0, **dict.fromkeys(kinds, 0)},
        }
        free = {"cpu": cpus, "mem": memory, "all mem": memory, "gpu": sum(kinds.values())}
        free |= {f"gpu:{kind}": count for kind, count in kinds.items() if kind}
        nodes[name] = TrueNode(free, state in GOOD)
    jobs = [_running(draw, form, 1 + at, nodes, facts) for at in range(draw.randint(0, 4))]
    parts, closed = _partitions(draw, form, list(nodes))
    for name, rules in parts.items():
        for each in rules["nodes"] if rules["max_cpus"] else ():
            nodes[each].free[f"cpu {name}"] = rules["max_cpus"]
    waiting: dict[str, TrueJob] = {}
    for at in range(draw.randint(1, 5)):
        document, found = _waiting(draw, form, 100 + at, nodes, facts, parts, closed)
        jobs.append(document)
        waiting |= found
    for job in jobs:
        if job["job_state"] not in ("PENDING", ["PENDING"]):
            job["partition"] = draw.choice(list(parts))
            node = nodes[job["nodes"]]
            if parts[job["partition"]]["exclusive"]:
                node.closed_to_others = True
            if f"cpu {job['partition']}" in node.free and "SUSPENDED" not in job["job_state"]:
                node.free[f"cpu {job['partition']}"] -= job["cpus"]["number"]
    view = view_of(jobs, read_cluster("drawn", _info(draw, form, facts, parts)))
    if "gres/gpu" not in view.counted:
        for job in waiting.values():
            job.units = sum(pod.need["cpu"] for pod in job.pods)
    return view, Truth(nodes, waiting)


def _partitions(draw: random.Random, form: str, names: list[str]) -> tuple[dict[str, dict[str, Any]], dict[str, bool]]:
    parts: dict[str, dict[str, Any]] = {}
    for name in ("gpu", "all")[: draw.randint(1, 2)]:
        parts[name] = {
            "nodes": sorted(draw.sample(names, draw.randint(1, len(names)))),
            "state": "UP",
            "max_nodes": None,
            "max_time": None,
            "exclusive": False,
            "accounts": "",
            "denied": "",
            "qos": "",
            "groups": "",
            "max_cpus": None,
        }
        if form == "24.11":  # nothing else tells of partitions
            parts[name] |= {
                "state": draw.choice(("UP",) * 5 + ("DOWN", "INACTIVE", "DRAIN")),
                "max_nodes": draw.choice((None, None, 1)),
                "max_time": draw.choice((None, None, 60)),
                "exclusive": draw.random() < 0.15,
                "accounts": draw.choice(("", "", "", "lab,hpc")),
                "denied": draw.choice(("", "", "", "other")),
                "qos": draw.choice(("", "", "ALL", "normal,high", "high")),
                "groups": draw.choice(("", "", "ALL", "physics,chem", "physics")),
                "max_cpus": draw.choice((None, None, 2, 4)),
            }
    return parts, {name: each["state"] in ("DOWN", "INACTIVE") for name, each in parts.items()}


def _running(draw: random.Random, form: str, number: int, nodes: dict[str, TrueNode], facts: Any) -> dict[str, Any]:
    """Draw a job that holds nodes, and take its room."""
    name = draw.choice(list(nodes))
    node, fact = nodes[name], facts[name]
    states = draw.choice(
        (["RUNNING"],) * 4 + (["SUSPENDED"], ["COMPLETING"], ["CONFIGURING"], ["RUNNING", "COMPLETING"])
    )
    cpus = draw.randint(0, max(0, node.free["cpu"] // 2))
    memory = draw.choice((0, 1000, 4000))
    memory = min(memory, max(node.free["mem"], 0))
    kind = draw.choice(list(fact["kinds"]) or ["none"])
    room = node.free.get(f"gpu:{kind}", node.free["gpu"] if kind == "" else 0)
    gpus = draw.randint(0, max(0, room))
    alone = not node.taken and draw.random() < 0.1
    held_cpus = 0 if states == ["SUSPENDED"] else cpus
    node.taken = True
    node.closed_to_others = node.closed_to_others or alone
    node.free["cpu"] -= held_cpus
    node.free["mem"] -= memory
    node.free["gpu"] -= gpus
    if kind and gpus:
        node.free[f"gpu:{kind}"] -= gpus
    fact["used"]["cpu"] += held_cpus
    fact["used"]["mem"] += memory
    if gpus:
        fact["used"][kind] += gpus
    typed = f"gpu:{kind}" if kind else "gpu"
    tracked = draw.random() < 0.6
    tres = f"cpu={cpus},mem={memory}M,node=1,billing={cpus}" + (f",gres/gpu={gpus}" if gpus and tracked else "")
    tres += f",gres/{typed}={gpus}" if gpus and tracked and kind else ""
    document = _blank(form, number, states, tres, 1, 1, cpus)
    document |= {
        "nodes": name,
        "tres_alloc_str": tres,
        "gres_detail": [f"{typed}:{gpus}(IDX:0)"] if gpus else [],
        "tres_per_node": f"gres:{typed}:{gpus}" if gpus else "",
    }
    if alone:
        document |= {"shared": "none"} if form == "22.05" else {"exclusive": ["true"], "shared": ["none"]}
    return document


def _blank(form: str, number: int, states: list[str], tres: str, count: int, tasks: int, cpus: int) -> dict[str, Any]:
    old = form == "22.05"
    return {
        "job_id": number,
        "job_state": states[0] if old and len(states) == 1 else states,
        "state_reason": "None",
        "state_description": "",
        "submit_time": _number(form, NOW - 100 - number),
        "eligible_time": _number(form, NOW - 100 - number),
        "start_time": _number(form, NOW - 50),
        "last_sched_evaluation": _number(form, NOW - 10),
        "tres_req_str": tres,
        "tres_alloc_str": "",
        "node_count": _number(form, count),
        "tasks": _number(form, tasks),
        "cpus": _number(form, cpus),
        "cpus_per_task": _number(form, None),
        "memory_per_node": _number(form, None),
        "memory_per_cpu": _number(form, None),
        "memory_per_tres": "",
        "cpus_per_tres": "",
        "tres_per_node": "",
        "tres_per_job": "",
        "tres_per_task": "",
        "tres_per_socket": "",
        "features": "",
        "required_nodes": "",
        "excluded_nodes": "",
        "nodes": "",
        "gres_detail": [],
        "priority": _number(form, 1000 - number),
        "partition": "",
        "user_name": f"u{number % 3}",
        "account": "lab",
        "qos": "normal",
        "group_name": ("physics", "chem", "bio")[number % 3],
        "dependency": "",
        "licenses": "",
        "resv_name": "",
        "burst_buffer": "",
        "array_job_id": _number(form, 0),
        "array_task_string": "",
        "array_max_tasks": _number(form, 0),
        "het_job_id": _number(form, 0),
        "contiguous": False,
        "core_spec": None if old else 0,
        "thread_spec": None if old else 32766,
        "max_nodes": _number(form, 0),
        "minimum_cpus_per_node": _number(form, 1),
        "minimum_tmp_disk_per_node": _number(form, 0),
        "hold": False,
        "shared": None if old else [],
        "time_limit": _number(form, 60),
        "flags": [],
        "reboot": False,
        "sockets_per_node": _number(form, None),
        "cores_per_socket": _number(form, None),
        "threads_per_core": _number(form, None),
    }


def _waiting(
    draw: random.Random,
    form: str,
    number: int,
    nodes: dict[str, TrueNode],
    facts: Any,
    parts: Any,
    closed: dict[str, bool],
) -> tuple[dict[str, Any], dict[str, TrueJob]]:
    count = draw.choice((1, 1, 1, 2))
    per_node = draw.choice((1, 1, 2))
    tasks, per_task = per_node * count, draw.choice((1, 2, 4))
    cpus = tasks * per_task
    gpus = draw.choice((0, 0, 1, 2, 4))
    kind = draw.choice(("", "", "a100", "t4")) if gpus else ""
    typed = f"gpu:{kind}" if kind else "gpu"
    memory = draw.choice((0, 1000, 6000))
    way = draw.choice(("node", "cpu", "all", "none")) if memory else "none"
    need: dict[str, int] = {"cpu": per_node * per_task, "gpu": gpus}
    if kind:
        need[f"gpu:{kind}"] = gpus
    tracked = draw.random() < 0.5
    total = gpus * count
    text = f"cpu={cpus},mem={{mem}}M,node={count},billing={cpus}" + (f",gres/gpu={total}" if gpus and tracked else "")
    text += f",gres/{typed}={total}" if gpus and tracked and kind else ""
    document = _blank(form, number, ["PENDING"], "", count, tasks, cpus)
    document |= {"cpus_per_task": _number(form, per_task), "max_nodes": _number(form, count)}
    shown, untouched = 0, False
    if way == "node":
        document["memory_per_node"] = _number(form, memory)
        need["mem"], shown = memory, memory * count
    elif way == "cpu":
        each = max(1, memory // need["cpu"])
        document["memory_per_cpu"] = _number(form, each)
        need["mem"] = each * need["cpu"]
        shown = each * cpus
    elif way == "all":
        document["memory_per_node"] = None if form == "22.05" else {"set": True, "infinite": False, "number": 0}
        untouched, shown = True, 8000 * count
    document["tres_req_str"] = text.format(mem=shown) if shown else text.replace("mem={mem}M,", "")
    if gpus:
        where = draw.choice(("node", "node", "job", "task"))
        if where == "node":
            document["tres_per_node"] = f"{draw.choice(('gres:', 'gres/', ''))}{typed}:{gpus}"
        elif where == "job":
            document["tres_per_job"] = f"gres/{typed}:{total}"
        elif total % tasks == 0:
            document["tres_per_task"] = f"gres/{typed}:{total // tasks}"
        else:
            document["tres_per_node"] = f"gres/{typed}:{gpus}"
    if per_task and form == "24.11":
        document["tres_per_task"] = ",".join(filter(None, (f"cpu={per_task}", document["tres_per_task"])))
    asked = draw.choice(("",) * 4 + ("fast", "fast&big", "fast|ib", "(fast|big)&rack1", "[fast|big]", "nowhere"))
    document["features"] = asked
    told = draw.sample(sorted(parts), draw.randint(1, len(parts)))
    document["partition"] = ",".join(told)
    alternatives = asked.strip("[]").split("|") if asked.startswith("[") else [asked]
    excluded = draw.choice(list(nodes)) if draw.random() < 0.15 else ""
    document["excluded_nodes"] = excluded
    required = draw.choice(list(nodes)) if draw.random() < 0.2 else ""
    document["required_nodes"] = required
    minutes = draw.choice((10, 60, 600))
    document["time_limit"] = _number(form, minutes)
    alone = draw.random() < 0.15
    if alone:
        document |= {"shared": "none"} if form == "22.05" else {"exclusive": ["true"], "shared": ["none"]}
    account = draw.choice(("lab", "lab", "other"))
    document["account"] = account
    may: bool | None = True
    if draw.random() < 0.3:
        may = False
        trick = draw.randrange(6)
        if trick == 0:
            document["state_reason"] = draw.choice(HOLDS)
        elif trick == 1:
            document["priority"] = _number(form, 0)
        elif trick == 2:
            document["dependency"] = "afterok:1(unfulfilled)"
        elif trick == 3 and form != "22.05":
            document["hold"] = True
        elif trick == 4:
            document["eligible_time"] = _number(form, NOW + 3600)
        elif trick == 5:
            may = None
            document |= draw.choice(
                (
                    {"licenses": "matlab:1"},
                    {"resv_name": "mine"},
                    {"burst_buffer": "x"},
                    {"het_job_id": _number(form, 7)},
                    {"state_description": "Nodes are asleep"},
                )
            )
        else:
            document["state_reason"] = draw.choice(HOLDS)
    else:
        document["state_reason"] = draw.choice(("None", "Priority", "Resources"))
    # a node for each partition that takes the job and each alternative of features: the first that is not empty counts
    reach: list[tuple[frozenset[str], bool, str]] = []
    for part in told:
        rules = parts[part]
        if (
            closed[part]
            or (rules["max_nodes"] and count > rules["max_nodes"])
            or (rules["max_time"] and minutes > rules["max_time"])
            or (rules["accounts"] and account not in rules["accounts"].split(","))
            or (not rules["accounts"] and account == rules["denied"])
            or rules["qos"] == "high"
            or (rules["groups"] not in ("", "ALL") and document["group_name"] not in rules["groups"])
        ):
            continue
        for alternative in alternatives:
            fitting = frozenset(
                name for name in rules["nodes"] if name != excluded and _has(alternative, facts[name]["features"])
            )
            reach.append((fitting, alone or rules["exclusive"], f"cpu {part}" if rules["max_cpus"] else ""))
    ids = [str(number)]
    limit = 99
    if draw.random() < 0.15:
        document |= {"array_job_id": _number(form, number), "array_task_string": "0-2"}
        ids = [f"{number}_{task}" for task in range(3)]
        if draw.random() < 0.6:
            limit = draw.choice((1, 2))
            document["array_max_tasks"] = _number(form, limit)
    found = {}
    for at, name in enumerate(ids):
        pods = [TruePod(dict(need), frozenset(nodes), untouched=untouched) for _ in range(count)]
        if required:
            pods[0].nodes = frozenset({required})
        job = TrueJob(pods, may if at < limit else False, True, units=total, reaches=reach)
        job.takes = {}
        if not reach:
            job.may = False
        found[name] = job
    return document, found


def _has(expression: str, features: list[str]) -> bool:
    if not expression:
        return True
    names = {name: name in features for name in ("fast", "big", "rack1", "ib", "nowhere")}
    return bool(eval(expression.replace("&", " and ").replace("|", " or "), {}, names))


def _info(draw: random.Random, form: str, facts: Any, parts: Any) -> dict[str, Any]:
    def gres(kinds: dict[str, int], tail: str = "(S:0-1)") -> str:
        return ",".join(f"gpu:{kind}:{count}{tail}" if kind else f"gpu:{count}{tail}" for kind, count in kinds.items())

    def used(fact: Any) -> str:
        return gres({kind: fact["used"][kind] for kind in fact["kinds"]}, "(IDX:0)")

    if form != "24.11":
        listed = []
        for name, fact in facts.items():
            state = fact["state"]
            old = {
                "state": state[0].lower(),
                "state_flags": state[1:],
                "features": ",".join(fact["features"]),
                "active_features": ",".join(fact["features"]),
            }
            new = {"state": state, "features": fact["features"], "active_features": fact["features"], "reservation": ""}
            listed.append(
                {
                    "name": name,
                    "cpus": fact["cpus"],
                    "real_memory": fact["mem"],
                    "gres": gres(fact["kinds"]),
                    "gres_used": used(fact),
                    "alloc_cpus": fact["used"]["cpu"],
                    "alloc_memory": fact["used"]["mem"],
                    "sockets": fact["cpus"],
                    "cores": 1,
                    "threads": 1,
                    "owner": None,
                    "mcs_label": "",
                    "temporary_disk": 0,
                    "partitions": [part for part, each in parts.items() if name in each["nodes"]],
                    **(old if form == "22.05" else new),
                }
            )
        return {"nodes": listed, "errors": []}
    entries = []
    for part, rules in parts.items():
        partition = {
            "name": part,
            "partition": {"state": [rules["state"]]},
            "maximums": {
                "nodes": _number(form, rules["max_nodes"]),
                "time": _number(form, rules["max_time"]),
                "oversubscribe": {"jobs": 0 if rules["exclusive"] else 1, "flags": []},
                "shares": 0 if rules["exclusive"] else 1,
                "cpus_per_node": _number(form, rules["max_cpus"]),
            },
            "minimums": {"nodes": 0},
            "accounts": {"allowed": rules["accounts"], "deny": rules["denied"]},
            "qos": {"allowed": rules["qos"], "deny": ""},
            "groups": {"allowed": rules["groups"]},
        }
        for name in rules["nodes"]:
            fact = facts[name]
            entry = {
                "partition": partition,
                "nodes": {"nodes": [name], "total": 1},
                "node": {"state": fact["state"]},
                "cpus": {
                    "minimum": fact["cpus"],
                    "maximum": fact["cpus"],
                    "total": fact["cpus"],
                    "allocated": fact["used"]["cpu"],
                },
                "memory": {"minimum": fact["mem"], "maximum": fact["mem"], "allocated": fact["used"]["mem"]},
                "gres": {"total": gres(fact["kinds"]), "used": used(fact)},
                "features": {"total": ",".join(fact["features"]), "active": ",".join(fact["features"])},
                "reservation": "",
                "sockets": {"minimum": 1},
                "cores": {"minimum": 8},
                "threads": {"minimum": 1},
                "disk": {"minimum": 0},
            }
            if draw.random() < 0.3:  # as sinfo prints groups of nodes, which tell nothing of single ones
                entry["cpus"].pop("allocated")
                entry["memory"].pop("allocated")
                entry["gres"]["used"] = ""
            entries.append(entry)
    return {"sinfo": entries, "errors": []}
