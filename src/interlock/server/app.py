"""Puts the server together: the front, the hot routes, and a file of routes for each group."""

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
from interlock.core.pause import MAX_BODY
from interlock.server import protocols
from interlock.server import static as page
from interlock.server.audit_jobs import Checks
from interlock.server.auth import Auth
from interlock.server.dependencies import AGENTS, ANYBODY, DECIDERS, LOOKERS, response
from interlock.server.http import error_answer, invalid_of
from interlock.server.idempotency import Repeats
from interlock.server.metrics import Metrics
from interlock.server.middleware.hosts_and_cors import doorway_of
from interlock.server.middleware.request import Entrance, internal
from interlock.server.openapi.fast_routes import hot_router
from interlock.server.protocols import Protocol
from interlock.server.router import Front, Hot, Live
from interlock.server.routes import (
    about,
    agents,
    approvals,
    audit,
    channels,
    deliveries,
    docs,
    freezes,
    grants,
    identities,
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
from interlock.server.routes import external as requests
from interlock.server.routes.calls import Calls
from interlock.server.routes.chat import Chatting
from interlock.server.routes.decisions import Deciding
from interlock.server.routes.docs import Manual
from interlock.server.routes.pauses import PauseRoutes
from interlock.server.routes.runs import RunRoutes
from interlock.server.state import Site
from interlock.server.stats_history import Plots
from interlock.server.streams.ledger_stream import Feed

ROUTES = (
    operations,
    session,
    links,
    oidc,
    page,
    people,
    keys,
    approvals,
    policy,
    rules,
    grants,
    freezes,
    questions,
    requests,
    stats,
    about,
    channels,
    deliveries,
    identities,
    agents,
    tools,
    pins,
    threads,
    audit,
    docs,
)


def build(site: Site) -> Entrance:
    settings = site.settings.server
    auth = Auth(site.accounts, settings.public_url)
    hot, foreign = hot_routes(site, auth), protocols.found(site, auth)
    rest = framework(site, auth, hot, foreign)
    doorway = doorway_of(settings.host, settings.public_url, settings.origins)
    repeats = Repeats(site.store.answers, auth, site.quotas)
    routes = [*hot, *(live for each in foreign for live in each.streams)]
    return Entrance(site, Front(auth, repeats, routes, rest, doorway, site.meters))


def framework(site: Site, auth: Auth, hot: Collection[Hot | Live], foreign: Collection[Protocol]) -> FastAPI:
    """All routes; the hot ones and the streams stand there for the document only."""
    shared = _routes(hot, foreign)
    rest = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=_life, routes=shared)
    rest.state.site, rest.state.auth, rest.state.metrics = site, auth, Metrics(site)
    rest.state.plots, rest.state.checks = Plots(site), Checks(site)
    rest.state.manual = Manual(rest, auth.cookie)
    rest.state.provider = oidc.provider(site)
    answers = (
        (Error, _known),
        (RequestValidationError, _unusable),
        (HTTPException, _unknown_route),
        (Exception, _broken),
    )
    for failure, answered in answers:
        rest.add_exception_handler(failure, answered)
    return rest


def _routes(hot: Collection[Hot | Live], foreign: Collection[Protocol]) -> list[BaseRoute]:
    """They hold nothing of a site, which a request finds in the state of its app: all sites of a process share them."""
    streams = [live for each in foreign for live in each.streams]
    addresses = tuple(f"{each.method} {each.template}" for each in (*hot, *streams))
    made = _made_routes()
    if addresses not in made:
        made[addresses] = _make_routes(hot, foreign)
    return made[addresses]


@cache
def _made_routes() -> dict[tuple[str, ...], list[BaseRoute]]:
    """To make them takes a tenth of a second, and the first request to each a little more."""
    return {}


def _make_routes(hot: Collection[Hot | Live], foreign: Collection[Protocol]) -> list[BaseRoute]:
    every = APIRouter()
    every.include_router(hot_router(hot))
    for routes in ROUTES:
        every.include_router(routes.router)
    for each in foreign:
        every.include_router(each.router)
    return every.routes


def hot_routes(site: Site, auth: Auth) -> list[Hot | Live]:
    calls, deciding, runs, chat = Calls(site), Deciding(site), RunRoutes(site), Chatting(site, auth)
    pauses = PauseRoutes(site)
    return [
        Hot("POST", "/api/calls", AGENTS, calls.propose),
        Hot("GET", "/api/calls/{approval_id}", AGENTS, calls.look),
        Hot("POST", "/api/calls/{approval_id}/start", AGENTS, calls.start),
        Hot("POST", "/api/calls/{approval_id}/renew", AGENTS, calls.renew),
        Hot("POST", "/api/calls/{approval_id}/finish", AGENTS, calls.finish),
        Hot("POST", "/api/calls/{approval_id}/cancel", AGENTS, calls.cancel),
        Hot("POST", "/api/calls/{approval_id}/abandon", AGENTS, calls.abandon),
        Hot("GET", "/api/runs", AGENTS, runs.listed),
        Hot("POST", "/api/runs", AGENTS, runs.take_up),
        Hot("POST", "/api/runs/{run_id}/renew", AGENTS, runs.renew),
        Hot("POST", "/api/runs/{run_id}/close", AGENTS, runs.close),
        Hot("POST", "/api/runs/{run_id}/leave", AGENTS, runs.leave),
        Hot("GET", "/api/pauses", ANYBODY, pauses.listed),
        Hot("POST", "/api/pauses", AGENTS, pauses.pause, MAX_BODY),
        Hot("POST", "/api/pauses/claim", AGENTS, pauses.claim),
        Hot("POST", "/api/pauses/renew", AGENTS, pauses.renew),
        Hot("POST", "/api/pauses/release", AGENTS, pauses.release),
        Hot("POST", "/api/pauses/resumed", AGENTS, pauses.resumed),
        Hot("POST", "/api/approvals/{approval_id}/decision", DECIDERS, deciding.decide),
        Live("POST", "/api/chat", DECIDERS, chat.send),
        Live("GET", "/api/threads/{thread_id}/events", DECIDERS, chat.follow),
        Live("GET", "/api/events", LOOKERS, Feed(site, auth.principal).stream),
    ]


@asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    """While the server runs, policies are followed."""
    site: Site = app.state.site
    following = asyncio.create_task(site.workspaces.follow())
    try:
        yield
    finally:
        following.cancel()
        await app.state.checks.stop()


async def _known(_: Request, error: Exception) -> Response:
    assert isinstance(error, Error)  # noqa: S101  registered for nothing else
    return response(error_answer(error))


async def _unusable(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  registered for nothing else
    return response(error_answer(invalid_of([(each["loc"][1:], each["msg"]) for each in error.errors()])))


async def _unknown_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  registered for nothing else
    if error.status_code == 404:
        return response(error_answer(NotFound("There is nothing at this address. The routes are listed at /docs.")))
    if error.status_code == 405:
        answer = error_answer(WrongMethod(f"{request.method} is not possible here. The routes are listed at /docs."))
        return response(answer._replace(headers=((b"allow", ", ".join(_methods(request)).encode()),)))
    return response(error_answer(InvalidRequest(str(error.detail))))


def _methods(request: Request) -> list[str]:
    """Of all routes at this address; the framework names those of the first only.

    Where the address is that of a route as it is written, those with a parameter in its place do not count:
    /api/pins/all is not the pin of a tool.
    """
    app: FastAPI = request.app
    found = [route for route in iter_route_contexts(app.routes) if route.matches(request.scope)[0] is not Match.NONE]
    exact = [route for route in found if route.path == request.url.path]
    return sorted({method for route in exact or found for method in route.methods or ()})


async def _broken(request: Request, _: Exception) -> Response:
    """The framework raises it again, and the entrance notes it."""
    error = internal()
    error.ids["request_id"] = request.scope["request_id"].decode()
    return response(error_answer(error))


class WrongMethod(Error):
    code, status = "wrong_method", 405
