"""The fast routes in the OpenAPI document, derived from their declarations: FastAPI describes them and serves none."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from interlock.core.errors import NotFound
from interlock.server.dependencies import documented_errors, require_roles
from interlock.server.fast_route import FastRoute, declared_routes


def make_docs_router(*handlers: type) -> APIRouter:
    router = APIRouter()
    for route in (route for each in handlers for route in declared_routes(each)):
        router.add_api_route(
            route.template,
            _make_endpoint(route),
            methods=[route.method],
            tags=[route.docs.tag],
            responses={**route.docs.responses, **documented_errors(*route.docs.error_statuses)},
            **require_roles(route.roles),
        )
    return router


def _make_endpoint(route: FastRoute) -> Any:
    async def endpoint(**_: Any) -> Response:
        raise NotFound("There is nothing at this address.")  # unreachable: the router serves this path first

    endpoint.__signature__ = _signature(route)  # type: ignore[attr-defined]  # as FastAPI reads it
    endpoint.__doc__ = route.docs.text
    return endpoint


def _signature(route: FastRoute) -> Signature:
    names = [part[1:-1] for part in route.template.split("/") if part.startswith("{")]
    wanted: list[tuple[str, object]] = [(name, str) for name in names]
    wanted += [("body", route.docs.body)] if route.docs.body else []
    wanted += [("query", Annotated[route.docs.query, Query()])] if route.docs.query else []
    return Signature([Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in wanted])
