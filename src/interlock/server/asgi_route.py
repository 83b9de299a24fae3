"""Declares a route that is served without the framework, once: router, role checks and OpenAPI document use this."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import getdoc
from types import MethodType
from typing import Any, NamedTuple, get_type_hints

from pydantic import BaseModel

from interlock.core.canonical import MAX_BYTES
from interlock.server.http import HttpResponse

Handler = Callable[..., Awaitable[HttpResponse]]
StreamHandler = Callable[..., Awaitable[None]]
Model = type[BaseModel]


class RouteDocs(NamedTuple):
    """What only the OpenAPI document needs; `responses` are the successful ones, by status."""

    tag: str
    responses: dict[int | str, dict[str, Any]]
    error_statuses: tuple[int, ...]
    body: Model | None = None
    query: Model | None = None
    text: str = ""


class AsgiRoute(NamedTuple):
    """A route without a framework; `template` is its path in the OpenAPI document.

    The router parses the `body` or the `query` of a request and passes it to the handler; for a request without a
    query, that is `default_query`. If `max_body` is larger than usual, the caller is authenticated before a large body
    is read. A handler that `streams` sends its response itself.
    """

    method: str
    template: str
    roles: frozenset[str]
    handle: Callable[..., Awaitable[Any]]
    docs: RouteDocs
    body: Model | None = None
    query: Model | None = None
    default_query: BaseModel | None = None
    max_body: int = MAX_BYTES
    streams: bool = False


@dataclass(frozen=True)
class AsgiRouter:
    """Decorators for the methods of a class that is made with the server's state; `tag` is the group of its routes.

    As in FastAPI, the docstring of a handler describes its route, and the type of its parameter `body` or `query` is
    what a request is parsed as. The decorator names the model instead if the handler parses a request itself.
    """

    tag: str

    def route(
        self,
        method: str,
        template: str,
        roles: frozenset[str],
        response: Any,
        *,
        errors: tuple[int, ...] = (),
        body: Model | None = None,
        max_body: int = MAX_BYTES,
    ) -> Callable[[Handler], AsgiRoute]:
        """A handler that takes the request, and its `body` or `query`; `response` is the model of its response."""
        docs = RouteDocs(self.tag, {200: {"model": response}}, errors, body)
        return lambda handle: _declare(method, template, roles, handle, docs)._replace(max_body=max_body)

    def stream(
        self,
        method: str,
        template: str,
        roles: frozenset[str],
        response: str,
        *,
        errors: tuple[int, ...] = (),
        query: Model | None = None,
        no_content: str = "",
    ) -> Callable[[StreamHandler], AsgiRoute]:
        """A handler that takes the request, `receive`, `send`, and its `body`; `response` describes the event stream.

        `no_content` says when there is none, and the status is 204.
        """
        content = {"text/event-stream": {"schema": {"type": "object"}}}  # the schema of each event
        responses: dict[int | str, dict[str, Any]] = {200: {"description": response, "content": content}}
        if no_content:
            responses[204] = {"description": no_content}
        docs = RouteDocs(self.tag, responses, errors, query=query)
        return lambda handle: _declare(method, template, roles, handle, docs)._replace(streams=True)


def declared_routes(handlers: type) -> list[AsgiRoute]:
    """The routes of a class, in the order of their declarations."""
    return [each for each in vars(handlers).values() if isinstance(each, AsgiRoute)]


def bind_routes(handlers: object) -> list[AsgiRoute]:
    """The routes of an object, ready to be served."""
    return [each._replace(handle=MethodType(each.handle, handlers)) for each in declared_routes(type(handlers))]


def _declare(
    method: str, template: str, roles: frozenset[str], handle: Callable[..., Awaitable[Any]], docs: RouteDocs
) -> AsgiRoute:
    hints = get_type_hints(handle)
    body, query = hints.get("body"), hints.get("query")
    text = " ".join((getdoc(handle) or "").split())
    docs = docs._replace(text=text, body=body or docs.body, query=query or docs.query)
    default_query = query() if query else None
    return AsgiRoute(method, template, roles, handle, docs, body=body, query=query, default_query=default_query)
