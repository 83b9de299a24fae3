"""Assembles the server: middleware, router, fast routes, and one module of routes for each group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import cache

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from interlock.core.errors import Error, InvalidRequest, NotFound
from interlock.core.run import MAX_BODY
from interlock.server import protocols, static
from interlock.server.audit_jobs import VerificationJobs
from interlock.server.auth import Auth
from interlock.server.dependencies import AGENTS, ALL_ROLES, DECIDERS, VIEWERS, to_starlette
from interlock.server.http import error_response, invalid_request
from interlock.server.idempotency import IdempotencyHandler
from interlock.server.metrics import MetricsExporter
from interlock.server.middleware import RequestMiddleware, internal_error, make_host_and_cors_policy
from interlock.server.openapi.fast_routes import make_docs_router
from interlock.server.protocols import ProtocolRoutes
from interlock.server.router import FastRoute, Router, StreamRoute
from interlock.server.routes import (
    agents,
    approvals,
    audit,
    channels,
    deliveries,
    docs,
    external,
    freezes,
    grants,
    keys,
    links,
    oidc,
    operations,
    people,
    pins,
    policy,
    questions,
    rules,
    session,
    stats,
    threads,
    tools,
)
from interlock.server.routes.approvals import DecisionRoutes
from interlock.server.routes.calls import CallRoutes
from interlock.server.routes.chat import ChatRoutes
from interlock.server.routes.docs import ApiDocs
from interlock.server.routes.pauses import PauseRoutes
from interlock.server.routes.runs import RunRoutes
from interlock.server.state import ServerState
from interlock.server.stats_history import StatsHistoryCache
from interlock.server.streams.ledger_stream import LedgerStreams

ROUTE_MODULES = (
    operations,
    session,
    links,
    oidc,
    static,
    people,
    keys,
    approvals,
    policy,
    rules,
    grants,
    freezes,
    questions,
    external,
    stats,
    channels,
    deliveries,
    agents,
    tools,
    pins,
    threads,
    audit,
    docs,
)


def build_app(state: ServerState) -> RequestMiddleware:
    settings = state.settings.server
    auth = Auth(state.accounts, settings.public_url)
    fast_routes, protocol_routes = make_fast_routes(state, auth), protocols.load_protocols(state, auth)
    fallback = build_fastapi(state, auth, fast_routes, protocol_routes)
    host_policy = make_host_and_cors_policy(settings.host, settings.public_url, settings.origins)
    idempotency = IdempotencyHandler(state.store.idempotency, auth, state.quotas)
    routes = [*fast_routes, *(route for each in protocol_routes for route in each.streams)]
    return RequestMiddleware(state, Router(auth, idempotency, routes, fallback, host_policy, state.counters))


def build_fastapi(
    state: ServerState,
    auth: Auth,
    fast_routes: Collection[FastRoute | StreamRoute],
    protocol_routes: Collection[ProtocolRoutes],
) -> FastAPI:
    """The FastAPI app with all routes; fast routes and streams are in it for the OpenAPI document only."""
    shared = _shared_routes(fast_routes, protocol_routes)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=_lifespan, routes=shared)
    app.state.site, app.state.auth, app.state.metrics = state, auth, MetricsExporter(state)
    app.state.plots, app.state.checks = StatsHistoryCache(state), VerificationJobs(state)
    app.state.manual = ApiDocs(app, auth.cookie_name)
    app.state.provider = oidc.make_provider(state)
    answers = (
        (Error, _handle_error),
        (RequestValidationError, _handle_validation_error),
        (HTTPException, _handle_http_exception),
        (Exception, _handle_unexpected_error),
    )
    for failure, answered in answers:
        app.add_exception_handler(failure, answered)
    return app


def _shared_routes(
    fast_routes: Collection[FastRoute | StreamRoute], protocol_routes: Collection[ProtocolRoutes]
) -> list[BaseRoute]:
    """The routes, shared by all servers of a process: they hold no state, which a request finds in `app.state`."""
    streams = [route for each in protocol_routes for route in each.streams]
    addresses = tuple(f"{each.method} {each.template}" for each in (*fast_routes, *streams))
    made = _route_cache()
    if addresses not in made:
        made[addresses] = _make_routes(fast_routes, protocol_routes)
    return made[addresses]


@cache
def _route_cache() -> dict[tuple[str, ...], list[BaseRoute]]:
    """Cache of routes: building them takes a tenth of a second, and the first request to each a little more."""
    return {}


def _make_routes(
    fast_routes: Collection[FastRoute | StreamRoute], protocol_routes: Collection[ProtocolRoutes]
) -> list[BaseRoute]:
    every = APIRouter()
    every.include_router(make_docs_router(fast_routes))
    for routes in ROUTE_MODULES:
        every.include_router(routes.router)
    for each in protocol_routes:
        every.include_router(each.router)
    return every.routes


def make_fast_routes(state: ServerState, auth: Auth) -> list[FastRoute | StreamRoute]:
    calls, deciding, runs, chat = CallRoutes(state), DecisionRoutes(state), RunRoutes(state), ChatRoutes(state, auth)
    pauses = PauseRoutes(state)
    return [
        FastRoute("POST", "/api/calls", AGENTS, calls.propose),
        FastRoute("GET", "/api/calls/{approval_id}", AGENTS, calls.show),
        FastRoute("POST", "/api/calls/{approval_id}/start", AGENTS, calls.start),
        FastRoute("POST", "/api/calls/{approval_id}/renew", AGENTS, calls.renew),
        FastRoute("POST", "/api/calls/{approval_id}/finish", AGENTS, calls.finish),
        FastRoute("POST", "/api/calls/{approval_id}/cancel", AGENTS, calls.cancel),
        FastRoute("POST", "/api/calls/{approval_id}/abandon", AGENTS, calls.abandon),
        FastRoute("GET", "/api/runs", AGENTS, runs.list_runs),
        FastRoute("POST", "/api/runs", AGENTS, runs.acquire),
        FastRoute("POST", "/api/runs/{run_id}/renew", AGENTS, runs.renew),
        FastRoute("POST", "/api/runs/{run_id}/close", AGENTS, runs.close),
        FastRoute("POST", "/api/runs/{run_id}/release", AGENTS, runs.release),
        FastRoute("GET", "/api/pauses", ALL_ROLES, pauses.list_pauses),
        FastRoute("POST", "/api/pauses", AGENTS, pauses.pause, MAX_BODY),
        FastRoute("POST", "/api/pauses/claim", AGENTS, pauses.claim),
        FastRoute("POST", "/api/pauses/renew", AGENTS, pauses.renew),
        FastRoute("POST", "/api/pauses/release", AGENTS, pauses.release),
        FastRoute("POST", "/api/pauses/complete", AGENTS, pauses.complete),
        FastRoute("POST", "/api/approvals/{approval_id}/decision", DECIDERS, deciding.decide),
        StreamRoute("POST", "/api/chat", DECIDERS, chat.send),
        StreamRoute("GET", "/api/threads/{thread_id}/events", DECIDERS, chat.follow),
        StreamRoute("GET", "/api/events", VIEWERS, LedgerStreams(state, auth.authenticate).stream),
    ]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Poll for policy changes while the server runs."""
    state: ServerState = app.state.site
    following = asyncio.create_task(state.workspaces.poll_changes())
    try:
        yield
    finally:
        following.cancel()
        await app.state.checks.stop()


async def _handle_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, Error)  # noqa: S101  registered for nothing else
    return to_starlette(error_response(error))


async def _handle_validation_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  registered for nothing else
    return to_starlette(error_response(invalid_request([(each["loc"][1:], each["msg"]) for each in error.errors()])))


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  registered for nothing else
    if error.status_code == 404:
        return to_starlette(
            error_response(NotFound("There is nothing at this address. The routes are listed at /docs."))
        )
    if error.status_code == 405:
        response = error_response(
            MethodNotAllowed(f"{request.method} is not possible here. The routes are listed at /docs.")
        )
        return to_starlette(response._replace(headers=((b"allow", ", ".join(_allowed_methods(request)).encode()),)))
    return to_starlette(error_response(InvalidRequest(str(error.detail))))


def _allowed_methods(request: Request) -> list[str]:
    """The methods of all routes at this path; the framework names those of the first route only.

    If the path is the literal path of a route, routes with a parameter in its place do not count: /api/pins/all is not
    the pin of a tool.
    """
    app: FastAPI = request.app
    found = [route for route in iter_route_contexts(app.routes) if route.matches(request.scope)[0] is not Match.NONE]
    exact = [route for route in found if route.path == request.url.path]
    return sorted({method for route in exact or found for method in route.methods or ()})


async def _handle_unexpected_error(request: Request, _: Exception) -> Response:
    """Build the 500 response; the framework raises the error again, and the middleware logs it."""
    error = internal_error()
    error.ids["request_id"] = request.scope["request_id"].decode()
    return to_starlette(error_response(error))


class MethodNotAllowed(Error):
    code, status = "wrong_method", 405
