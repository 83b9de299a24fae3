"""Protocols of existing clients and front ends: one module each, found by its name, which only translates.

A module has a `router` with its plain routes, and `streams` if it has streaming responses. Of what a client posts, only
ids, decisions and the identity of the signed-in person are trusted: tools, arguments and history are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from fastapi import APIRouter

from interlock.server.auth import Auth
from interlock.server.dependencies import RouteDocs, document_route
from interlock.server.router import StreamRoute
from interlock.server.state import ServerState

StreamFactory = Callable[[ServerState, Auth], Sequence[tuple[StreamRoute, RouteDocs]]]


class ProtocolRoutes(NamedTuple):
    """`router` has all its routes, for the OpenAPI document; `streams` are served before FastAPI sees them."""

    name: str
    router: APIRouter
    streams: Sequence[StreamRoute]


def load_protocols(state: ServerState, auth: Auth) -> list[ProtocolRoutes]:
    """Load every module and package of this folder."""
    names = sorted(each.name for each in iter_modules(__path__))
    return [_load_protocol(name, state, auth) for name in names]


def _load_protocol(name: str, state: ServerState, auth: Auth) -> ProtocolRoutes:
    module = import_module(f"{__name__}.{name}")
    plain: APIRouter = module.router
    streams: StreamFactory = getattr(module, "streams", lambda *_: ())
    router, stream_routes = APIRouter(), streams(state, auth)
    router.include_router(plain)
    named = APIRouter(tags=plain.tags)
    for each, docs in stream_routes:
        document_route(named, each, docs)
    router.include_router(named)
    return ProtocolRoutes(name, router, [each for each, _ in stream_routes])
