"""The OpenAPI document of the service."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from copter_serve.service.policy_names import POLICY_NAMES
from copter_serve.service.problems import MEDIA_TYPE
from copter_serve.service.volcano import VERBS

Schema = dict[str, Any]

NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 1}
FROM_ZERO: Schema = {"type": "integer", "minimum": 0}
TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 253}
TEXTS: Schema = {"type": "array", "items": TEXT}
FRACTION: Schema = {"type": "number", "minimum": 0, "maximum": 1}
POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
TABLE: Schema = {
    "type": "object",
    "description": 'GPU type -> {"GPUs": units of work per second}; 0 where it cannot run.',
    "additionalProperties": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Schema, required: tuple[str, ...] = (), closed: bool = True) -> Schema:
    found: Schema = {"type": "object", "properties": properties}
    if required:
        found["required"] = list(required)
    if closed:
        found["additionalProperties"] = False
    return found


def _schemas() -> Schema:
    """Return the schemas of all documents."""
    one_rate = {
        "description": "As in throughputs; a number is the rate on the GPUs that the job requests.",
        "type": "object",
        "additionalProperties": {"oneOf": [NUMBER, TABLE["additionalProperties"]]},
    }
    pin = _object({"gpu_type": TEXT, "nodes": {"type": "object", "additionalProperties": COUNT}}, ("gpu_type", "nodes"))
    kinds = {
        "type": "object",
        "additionalProperties": _object({"nodes": FROM_ZERO, "gpus_per_node": COUNT}, ("nodes", "gpus_per_node")),
    }
    change = {"id": TEXT, "weight": POSITIVE, "progress": FRACTION, "restarts": FROM_ZERO}
    allocations = {"type": "object", "additionalProperties": _ref("Allocation")}
    allocation = _object(
        {"gpu_type": TEXT, "gpus": COUNT, "nodes": {"type": "object", "additionalProperties": COUNT}}, closed=False
    )
    job = {
        "id": TEXT, "application": {"type": "string"}, "weight": POSITIVE, "gpus": COUNT, "min_gpus": COUNT,
        "max_gpus": COUNT, "requested_gpus": COUNT, "preemptible": {"type": "boolean"}, "work": POSITIVE,
        "submit_s": {"type": "number", "minimum": 0}, "throughputs": one_rate, "progress": FRACTION,
        "restarts": FROM_ZERO,
        "deadlines": {"type": "array", "items": {"type": "array", "items": POSITIVE, "minItems": 2, "maxItems": 2}},
    }  # fmt: skip
    figures = {
        "version": FROM_ZERO, "sequence": FROM_ZERO, "edition": FROM_ZERO, "computed_s": {"type": ["number", "null"]},
        "status": {"enum": ["optimal", "feasible", "kept_previous"]}, "failure": {"type": ["string", "null"]},
        "objective": NUMBER, "bound": NUMBER, "gap": NUMBER,
        "prices": {"type": "object", "additionalProperties": NUMBER},
        "capacity": {"type": "object", "additionalProperties": FROM_ZERO},
        "used": {"type": "object", "additionalProperties": FROM_ZERO},
        "jobs": FROM_ZERO, "running": FROM_ZERO,
        "skipped": {"type": "object", "additionalProperties": {"type": "string"}},
        "round_s": NUMBER, "timings": {"type": "object", "additionalProperties": NUMBER},
    }  # fmt: skip
    return {
        "Cluster": _object(
            {
                "types": kinds, "policy": {"enum": list(POLICY_NAMES)}, "round_s": POSITIVE,
                "react_s": {"type": "number", "minimum": 0}, "deadline_s": POSITIVE, "restart_penalty": FRACTION,
            },
            ("types",),
        ),
        "Job": _object(job, ("id",)),
        "Delta": _object(
            {
                "id": {**TEXT, "description": "Of the sender's choice; sent again, it is not done again."},
                "add_jobs": {"type": "array", "items": _ref("Job")},
                "change_jobs": {
                    "type": "array",
                    "items": _object(change, ("id",)),
                },
                "remove_jobs": TEXTS,
                "throughputs": {"type": "object", "description": "Measured, by job id.", "additionalProperties": TABLE},
                "set_capacity": {"type": "object", "additionalProperties": FROM_ZERO},
                "add_nodes": {"type": "object", "additionalProperties": TEXTS},
                "remove_nodes": TEXTS,
                "pins": {"type": "object", "additionalProperties": {"oneOf": [pin, {"type": "null"}]}},
            }
        ),
        "Acknowledgement": _object(
            {
                "sequence": FROM_ZERO, "repeated": {"type": "boolean"}, "in_force": _ref("Plan"),
                "plan": _object({"version": FROM_ZERO, "sequence": FROM_ZERO}),
            },
            ("sequence", "plan"),
        ),
        "Allocation": allocation,
        "Plan": _object({**figures, "allocations": allocations}, closed=False),
        "Problem": _object(
            {"type": TEXT, "title": TEXT, "status": COUNT, "detail": TEXT, "where": TEXT, "fix": TEXT},
            ("type", "title", "status", "detail"),
        ),
    }  # fmt: skip


def _answer(description: str, schema: Schema | None = None, media: str = "application/json") -> Schema:
    found: Schema = {"description": description}
    if schema is not None:
        found["content"] = {media: {"schema": schema}}
    return found


def _operation(
    summary: str, answers: dict[str, Schema], body: Schema | None = None, query: tuple[str, ...] = (), errors: str = ""
) -> Schema:
    found: Schema = {"summary": summary, "responses": dict(answers)}
    for status in errors.split():
        found["responses"][status] = {"$ref": "#/components/responses/Problem"}
    if body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    if query:
        found["parameters"] = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in query]
    return found


def _paths() -> Schema:
    """Return the descriptions of all routes."""
    any_object: Schema = {"type": "object"}
    plan = _ref("Plan")
    root = "/v1/clusters/{cluster}"
    body_errors = "400 401 408 413 415 422 503"
    return {
        "/v1/clusters": {
            "get": _operation("All clusters, in short", {"200": _answer("Clusters", any_object)}, errors="401")
        },
        root: {
            "put": _operation(
                "Make a cluster",
                {"201": _answer("Made", any_object), "200": _answer("There already", any_object)},
                _ref("Cluster"),
                errors=f"409 429 {body_errors}",
            ),
            "get": _operation("A cluster, in short", {"200": _answer("The cluster", any_object)}, errors="401 404"),
            "delete": _operation("Take a cluster away", {"204": _answer("Gone")}, errors="401 404 503"),
        },
        f"{root}/deltas": {
            "post": _operation(
                "Change jobs, nodes, throughputs, pins: all of it or nothing; answered when it is journaled",
                {"200": _answer("Done", _ref("Acknowledgement"))},
                _ref("Delta"),
                ("plan",),
                f"404 409 {body_errors}",
            )
        },
        f"{root}/plan": {
            "get": _operation(
                "The plan in force; wait=SECONDS: first wait for a plan that includes every acknowledged delta",
                {"200": _answer("The plan", plan), "304": _answer("As before")},
                query=("wait",),
                errors="401 404 422",
            )
        },
        f"{root}/plan/stream": {
            "get": _operation(
                "Plans as server-sent events",
                {"200": _answer("Events: plan, changes", {"type": "string"}, "text/event-stream")},
                query=("mode",),
                errors="401 404",
            )
        },
        f"{root}/plan/jobs/{{job}}": {
            "get": _operation("What one job has", {"200": _answer("Its allocation", any_object)}, errors="401 404")
        },
        f"{root}/explain/{{job}}": {
            "get": _operation("Why a job got what it got", {"200": _answer("Why", any_object)}, errors="401 404 503")
        },
        f"{root}/what-if": {
            "get": _operation(
                "What a change would do to the plan of now; nothing is changed",
                {"200": _answer("Its effect", any_object)},
                query=("change",),
                errors="401 404 409 422 503",
            )
        },
        f"{root}/quote": {
            "post": _operation(
                "What a job would be promised now, and deadlines that could be; the job is not added",
                {"200": _answer("The promise and quotes", any_object)},
                any_object,
                errors=f"404 409 503 {body_errors}",
            )
        },
        f"{root}/waiting": {
            "get": _operation(
                "Jobs that wait, for what, and when they may start",
                {"200": _answer("Jobs", any_object)},
                query=("find",),
                errors="401 404",
            )
        },
        f"{root}/history": {
            "get": _operation(
                "Rounds since the service began", {"200": _answer("Points", any_object)}, errors="401 404"
            )
        },
        f"{root}/jobs": {
            "get": _operation(
                "Ids of the jobs", {"200": _answer("Ids", any_object)}, query=("after",), errors="401 404"
            )
        },
        f"{root}/jobs/{{job}}": {"get": _operation("A job", {"200": _answer("The job", any_object)}, errors="401 404")},
        f"{root}/volcano/{{verb}}": {
            "post": _operation(
                f"Volcano's extender protocol: {', '.join(VERBS)}",
                {"200": _answer("As the plugin expects it", any_object)},
                any_object,
                errors=f"404 {body_errors}",
            )
        },
        "/healthz": {"get": _operation("Whether the process lives", {"200": _answer("It does", any_object)})},
        "/readyz": {
            "get": _operation(
                "Whether deltas are taken and every scheduler has started",
                {"200": _answer("They are", any_object), "503": _answer("Not yet", any_object)},
            )
        },
        "/metrics": {
            "get": _operation(
                "Prometheus's text", {"200": _answer("Metrics", {"type": "string"}, "text/plain")}, errors="401"
            )
        },
        "/openapi.json": {"get": _operation("This document", {"200": _answer("OpenAPI", any_object)})},
        "/": {"get": _operation("The live page", {"200": _answer("HTML", {"type": "string"}, "text/html")})},
        "/static/{name}": {
            "get": _operation(
                "Its script and style", {"200": _answer("A file", {"type": "string"}, "text/javascript")}, errors="404"
            )
        },
    }


def openapi_document() -> Schema:
    """Return the OpenAPI document."""
    try:
        release = version("copter-lp")
    except PackageNotFoundError:
        release = "0"
    paths = _paths()
    for path, operations in paths.items():
        names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        for operation in operations.values():
            own = [{"name": name, "in": "path", "required": True, "schema": TEXT} for name in names]
            if own:
                operation["parameters"] = own + operation.get("parameters", [])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "copter serve",
            "version": release,
            "description": "Deltas of jobs, capacity and measured speeds in; feasible plans out.",
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "responses": {"Problem": _answer("A problem document (RFC 9457)", _ref("Problem"), MEDIA_TYPE)},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }
