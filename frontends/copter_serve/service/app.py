"""The service as an ASGI application: its routes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from copter_serve.service.audit import Audit
from copter_serve.service.bodies import read_body
from copter_serve.service.cluster_record import ClusterRecord
from copter_serve.service.cluster_service import ClusterService
from copter_serve.service.clusters import Clusters
from copter_serve.service.direct import BOOT, Direct, GetPlan, PostDelta
from copter_serve.service.fields import parse_json
from copter_serve.service.guard import Guard, problem_message
from copter_serve.service.metrics import Metrics
from copter_serve.service.openapi import openapi_document
from copter_serve.service.problems import Problem
from copter_serve.service.settings import ServeSettings
from copter_serve.service.tenants import tenant_of
from copter_serve.service.volcano import Volcano
from copter_serve.service.waiting import waiting_document

LOG = logging.getLogger("copter.serve")
EXPLAIN_S = 30.0  # time limit of an explanation or of the effect of a change, in seconds
MOST_CHANGE = 4000  # most characters of a what-if change
MOST_LISTED = 1000  # most job ids in a list of jobs
PAGE_TYPES = {
    "page.html": "text/html; charset=utf-8", "page.js": "text/javascript", "page.css": "text/css",
    "icon.svg": "image/svg+xml",
}  # fmt: skip


class Routes:
    """Answers to the service's requests.

    Parameters
    ----------
    clusters : Clusters
    settings : ServeSettings
    metrics : Metrics
    """

    def __init__(self, clusters: Clusters, settings: ServeSettings, metrics: Metrics) -> None:
        self.clusters, self.settings, self.metrics = clusters, settings, metrics
        self.post_delta, self.get_plan = PostDelta(clusters, settings), GetPlan(clusters)
        self.volcano = Volcano()
        self._openapi = json.dumps(openapi_document()).encode()
        self._pages = {name: files("copter_serve.service").joinpath("page", name).read_bytes() for name in PAGE_TYPES}
        style = files("copter_frontends.report").joinpath("page.css").read_bytes()  # one style for page and report
        self._pages["page.css"] = style + self._pages["page.css"]

    def listed(self) -> list[Route]:
        """Return the routes, the most frequent first."""
        cluster = "/v1/clusters/{cluster}"
        return [
            Route(f"{cluster}/deltas", self.post_delta, methods=["POST"]),
            Route(f"{cluster}/plan", self.get_plan, methods=["GET"]),
            Route(f"{cluster}/volcano/{{verb}}", self.post_volcano, methods=["POST"]),
            Route(f"{cluster}/plan/stream", self.stream_plans),
            Route(f"{cluster}/plan/jobs/{{job:path}}", self.get_allocation),
            Route(f"{cluster}/explain/{{job:path}}", self.get_explanation),
            Route(f"{cluster}/what-if", self.get_what_if),
            Route(f"{cluster}/quote", self.post_quote, methods=["POST"]),
            Route(f"{cluster}/waiting", self.get_waiting),
            Route(f"{cluster}/history", self.get_history),
            Route(f"{cluster}/jobs/{{job:path}}", self.get_job),
            Route(f"{cluster}/jobs", self.list_jobs),
            Route("/v1/clusters", self.list_clusters),
            Route(cluster, self.put_cluster, methods=["PUT"]),
            Route(cluster, self.get_cluster),
            Route(cluster, self.delete_cluster, methods=["DELETE"]),
            Route("/healthz", self.get_health),
            Route("/readyz", self.get_readiness),
            Route("/metrics", self.get_metrics),
            Route("/openapi.json", self.get_openapi),
            Route("/", self.get_page),
            Route("/static/{name}", self.get_static),
        ]

    def _cluster(self, request: Request) -> ClusterService:
        return self.clusters.get(request.path_params["cluster"], tenant_of(request.scope))

    # Deltas and plans ---------------------------------------------------------------------------------------------

    async def get_allocation(self, request: Request) -> Response:
        """Answer with one job's allocation in the plan in force."""
        service, job_id = self._cluster(request), request.path_params["job"]
        if job_id not in service.state.jobs:
            raise Problem(404, f"there is no job {job_id!r}", fix="add it with a delta")
        book = service.book
        return JSONResponse(
            {
                "job": job_id,
                "version": book.version,
                "sequence": book.header["sequence"],
                "allocation": book.allocations.get(job_id),
                "skipped": book.header.get("skipped", {}).get(job_id),
            }
        )

    async def stream_plans(self, request: Request) -> Response:
        """Send plans as server-sent events from now on: complete ones, or changes with ?mode=changes."""
        service = self._cluster(request)
        changes = request.query_params.get("mode") == "changes"
        last = request.headers.get("last-event-id", "")
        edition, _, boot = last.partition("-")
        seen = int(edition[:15]) if changes and boot == BOOT and edition.isascii() and edition.isdigit() else -1

        async def events() -> AsyncIterator[bytes]:
            yield b"retry: 2000\n\n"
            async for event in service.watch(seen if changes else None):
                if event is None:
                    yield b": still here\n\n"
                else:
                    at, kind, body = event
                    yield b"id: %d-%s\nevent: %s\ndata: %s\n\n" % (at, BOOT.encode(), kind.encode(), body)

        return StreamingResponse(events(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    async def get_explanation(self, request: Request) -> Response:
        """Answer with the explanation of a job's allocation."""
        service, job_id = self._cluster(request), request.path_params["job"]
        if job_id not in service.state.jobs:
            raise Problem(404, f"there is no job {job_id!r}", fix="add it with a delta")
        return JSONResponse(await service.link.ask({"job": job_id}, EXPLAIN_S))

    async def get_what_if(self, request: Request) -> Response:
        """Answer with the effect that a change would have on the present plan; nothing is changed."""
        service, text = self._cluster(request), request.query_params.get("change", "")
        if len(text) > MOST_CHANGE:
            raise Problem(422, f"the change has {len(text)} characters, at most {MOST_CHANGE} are taken", "change")
        return JSONResponse(await service.link.ask({"what_if": text}, EXPLAIN_S))

    async def post_quote(self, request: Request) -> Response:
        """Answer with what a job would be promised now, and deadlines that could be; the job is not added."""
        service = self._cluster(request)
        limit = tenant_of(request.scope).body_limit(self.settings.max_body)
        told = parse_json(await read_body(request.scope, request.receive, limit, self.settings.body_s))
        return JSONResponse(await service.link.ask({"quote": json.dumps(told)}, EXPLAIN_S))

    async def get_waiting(self, request: Request) -> Response:
        """Answer with the waiting jobs and what they wait for."""
        service = self._cluster(request)
        return JSONResponse(waiting_document(service.state, service.book, request.query_params.get("find", "")))

    async def get_history(self, request: Request) -> Response:
        """Answer with the rounds since the service began."""
        return JSONResponse(self._cluster(request).history.document())

    async def get_job(self, request: Request) -> Response:
        """Answer with a job's data."""
        service, job_id = self._cluster(request), request.path_params["job"]
        job = service.state.jobs.get(job_id)
        if job is None:
            raise Problem(404, f"there is no job {job_id!r}", fix="add it with a delta")
        return JSONResponse({**job.document(), "allocation": service.book.allocations.get(job_id)})

    async def list_jobs(self, request: Request) -> Response:
        """Answer with job ids in alphabetical order, a thousand at a time, starting after ?after=ID."""
        service, after = self._cluster(request), request.query_params.get("after", "")
        names = sorted(name for name in service.state.jobs if name > after)
        return JSONResponse({"jobs": names[:MOST_LISTED], "more": len(names) > MOST_LISTED})

    async def post_volcano(self, request: Request) -> Response:
        """Answer a call of Volcano's extender protocol."""
        service = self._cluster(request)
        limit = tenant_of(request.scope).body_limit(self.settings.max_session)
        body = await read_body(request.scope, request.receive, limit, self.settings.body_s)
        return JSONResponse(await self.volcano.answer(service, request.path_params["verb"], body))

    # Clusters -----------------------------------------------------------------------------------------------------

    async def list_clusters(self, request: Request) -> Response:
        """Answer with a summary of all clusters of the tenant."""
        own = self.clusters.of(tenant_of(request.scope))
        return JSONResponse({"clusters": [service.document() for service in own]})

    async def put_cluster(self, request: Request) -> Response:
        """Create a cluster; repeating the same request does nothing."""
        tenant = tenant_of(request.scope)
        limit = tenant.body_limit(self.settings.max_body)
        record = ClusterRecord.read(
            parse_json(await read_body(request.scope, request.receive, limit, self.settings.body_s))
        )
        service, new = await self.clusters.make(request.path_params["cluster"], record, tenant)
        return JSONResponse(service.document(), 201 if new else 200)

    async def get_cluster(self, request: Request) -> Response:
        """Answer with a summary of a cluster."""
        return JSONResponse(self._cluster(request).document())

    async def delete_cluster(self, request: Request) -> Response:
        """Delete a cluster and its journal."""
        await self.clusters.delete(request.path_params["cluster"])
        return Response(status_code=204)

    # The service itself -------------------------------------------------------------------------------------------

    async def get_health(self, request: Request) -> Response:
        """Answer that the process is alive and its event loop runs."""
        return JSONResponse({"status": "ok"})

    async def get_readiness(self, request: Request) -> Response:
        """Answer whether the service accepts deltas and every cluster's first scheduler has started or failed.

        A scheduler that ended later is restarted while the others go on: the status is then "degraded", with code 200,
        and with code 503 if no cluster is planned for. The cluster's document says why its scheduler ended.
        """
        served = list(self.clusters.served.values())
        links = [each.link for each in served if not each.link.ready]
        waiting = sum(link.restarts + link.silences == 0 for link in links)
        stale = sum(each.link.ready and not each.is_planning for each in served)
        counts = {"waiting": waiting, "restarting": len(links) - waiting, "stale": stale}
        if not self.clusters.opened or waiting:
            return JSONResponse({"status": "starting", **counts}, 503)
        bad = counts["restarting"] + stale
        status = "degraded" if bad else "ready"
        return JSONResponse({"status": status, **counts}, 503 if bad and bad == len(served) else 200)

    async def get_metrics(self, request: Request) -> Response:
        """Answer with the metrics as Prometheus's text."""
        for name, service in self.clusters.served.items():
            self.metrics.restarts.labels(name).set(service.link.restarts)
            self.metrics.watchers.labels(name).set(service.watchers)
            self.metrics.plan_age.labels(name).set(service.plan_age_s)
            self.metrics.ready.labels(name).set(service.link.ready)
            self.metrics.silences.labels(name).set(service.link.silences)
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def get_openapi(self, request: Request) -> Response:
        """Answer with the OpenAPI document."""
        return Response(self._openapi, media_type="application/json")

    async def get_page(self, request: Request) -> Response:
        """Answer with the live page."""
        return Response(self._pages["page.html"], media_type=PAGE_TYPES["page.html"])

    async def get_static(self, request: Request) -> Response:
        """Answer with the live page's script or style."""
        name = request.path_params["name"]
        if name not in self._pages:
            raise Problem(404, f"there is no file {name!r}")
        return Response(self._pages[name], media_type=PAGE_TYPES[name])


def make_app(clusters: Clusters, settings: ServeSettings, metrics: Metrics) -> Guard:
    """Return the application; its start opens the clusters and its end closes them."""
    audit = None if settings.audit is None else Audit(settings.audit)
    routes = Routes(clusters, settings, metrics)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_exception_handler(log_lost)
        await clusters.open()
        yield
        routes.volcano.close()
        await clusters.close()
        if audit is not None:
            audit.close()

    async def on_problem(request: Request, error: Exception) -> Response:
        return problem_response(error if isinstance(error, Problem) else Problem(500, str(error)))

    async def on_http_error(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        detail = "there is nothing at this path" if status == 404 else "the method does not go with this path"
        return problem_response(
            Problem(status, f"{request.method} {request.url.path}: {detail}", fix="see /openapi.json")
        )

    async def on_error(request: Request, error: Exception) -> Response:
        return problem_response(Problem(500, "an error of the service's own; its log has more"))

    app = Starlette(
        routes=routes.listed(),
        lifespan=lifespan,
        exception_handlers={Problem: on_problem, HTTPException: on_http_error, Exception: on_error},
    )
    app.router.redirect_slashes = False
    direct = Direct(app, {("POST", "deltas"): routes.post_delta, ("GET", "plan"): routes.get_plan})
    return Guard(direct, settings, metrics, audit)


def problem_response(problem: Problem) -> Response:
    """Return a problem as a response."""
    body, headers = problem_message(problem)
    return Response(body, problem.status, dict(headers))


def log_lost(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no task has caught."""
    LOG.error("%s: %s", context.get("message", "error"), context.get("exception", ""))
