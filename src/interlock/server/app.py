"""Assembles the server: middleware, router, ASGI routes, and one module of routes for each group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
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
from interlock.server import static
from interlock.server.audit_jobs import VerificationJobs
from interlock.server.dependencies import record_invalid_decision, server_state, to_starlette
from interlock.server.http import error_response, invalid_request
from interlock.server.idempotency import IdempotencyHandler
from interlock.server.middleware import RequestMiddleware, internal_error, make_host_and_cors_policy
from interlock.server.openapi.document import make_docs_router
from interlock.server.protocols import load_protocols
from interlock.server.router import Router, bind_routes
from interlock.server.routes import (
    activity,
    agents,
    approvals,
    audit,
    calls,
    channels,
    chat,
    content,
    docs,
    external,
    freezes,
    grants,
    keys,
    links,
    oidc,
    okrs,
    operations,
    people,
    pins,
    policy,
    rules,
    session,
    stats,
    tools,
)
from interlock.server.routes.approvals import DecisionRoutes
from interlock.server.routes.calls import CallRoutes
from interlock.server.routes.chat import ChatRoutes
from interlock.server.routes.docs import ApiDocs
from interlock.server.routes.operations import MetricsExporter
from interlock.server.routes.pauses import PauseRoutes
from interlock.server.routes.runs import RunRoutes
from interlock.server.routes.stats import StatsHistoryCache
from interlock.server.state import ServerState
from interlock.server.streams.ledger_stream import EventRoutes

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
    calls,
    external,
    stats,
    channels,
    agents,
    activity,
    tools,
    pins,
    chat,
    content,
    okrs,
    audit,
    docs,
)


ASGI_ROUTES: tuple[type, ...] = (CallRoutes, RunRoutes, PauseRoutes, DecisionRoutes, ChatRoutes, EventRoutes)


def build_app(state: ServerState) -> RequestMiddleware:
    settings = state.settings.server
    host_policy = make_host_and_cors_policy(settings.host, settings.public_url, settings.origins)
    idempotency = IdempotencyHandler(state.store.idempotency, state.auth, state.quotas)
    handlers = [*ASGI_ROUTES, *(each for protocol in load_protocols() for each in protocol.handlers)]
    routes = [route for each in handlers for route in bind_routes(each(state))]
    fallback = _build_fastapi(state)
    return RequestMiddleware(state, Router(state, idempotency, routes, fallback, host_policy))


def _build_fastapi(state: ServerState) -> FastAPI:
    """The FastAPI app with all routes; ASGI routes are in it for the OpenAPI document only."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=_lifespan, routes=framework_routes())
    app.state.server_state, app.state.metrics = state, MetricsExporter(state)
    app.state.stats_history, app.state.verification_jobs = StatsHistoryCache(state), VerificationJobs(state)
    app.state.api_docs = ApiDocs(framework_routes(), state.auth.cookie_name)
    app.state.provider = oidc.make_provider(state)
    handlers = (
        (Error, _handle_error),
        (RequestValidationError, _handle_validation_error),
        (HTTPException, _handle_http_exception),
        (Exception, _handle_unexpected_error),
    )
    for failure, handler in handlers:
        app.add_exception_handler(failure, handler)
    return app


@cache
def framework_routes() -> list[BaseRoute]:
    """The routes, shared by all servers of a process: they hold no state, which a request finds in `app.state`.

    To build them takes a tenth of a second, and the first request to each a little more.
    """
    every = APIRouter()
    every.include_router(make_docs_router(*ASGI_ROUTES))
    for module in ROUTE_MODULES:
        every.include_router(module.router)
    for protocol in load_protocols():
        every.include_router(protocol.router)
        every.include_router(make_docs_router(*protocol.handlers))
    return every.routes


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Poll for policy changes while the server runs."""
    state: ServerState = app.state.server_state
    following = asyncio.create_task(state.workspaces.poll_changes())
    try:
        yield
    finally:
        following.cancel()
        await app.state.verification_jobs.stop()


async def _handle_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, Error)  # noqa: S101  registered for nothing else
    return to_starlette(error_response(error))


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  registered for nothing else
    invalid = invalid_request([(each["loc"][1:], each["msg"]) for each in error.errors()])
    await record_invalid_decision(request, error.body, invalid)
    return to_starlette(error_response(invalid))


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  registered for nothing else
    if error.status_code == 404:
        page = static.missing_page(request, await server_state(request))
        return page or to_starlette(
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
