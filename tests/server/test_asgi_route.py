"""An ASGI route is declared once, beside its handler: this is what the router and the document make of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from interlock.server.app import ASGI_ROUTES
from interlock.server.http import HttpRequest, HttpResponse, RequestBody, example, json_response
from interlock.server.openapi.document import TAGS, build_openapi, make_docs_router
from interlock.server.protocols import load_protocols
from interlock.server.router import AsgiRouter, bind_routes, declared_routes

asgi_routes = AsgiRouter("agents")
AGENT = frozenset({"agent"})


class ShelfQuery(BaseModel):
    limit: Annotated[int, Field(ge=1, le=9, description="The most books on one page.")] = 3


class BookBody(RequestBody):
    model_config = example({"title": "Emma", "lent_to": None})

    title: str
    lent_to: str | None = None


class BookJson(BaseModel):
    title: str


class BookRoutes:
    def __init__(self, owner: str) -> None:
        self._owner = owner

    @asgi_routes.route("GET", "/api/books/{book_id}", AGENT, BookJson, errors=(404,))
    async def show(self, request: HttpRequest, query: ShelfQuery) -> HttpResponse:
        """Show a book. The title names its owner."""
        return json_response({"title": f"{self._owner} {query.limit}"})

    @asgi_routes.route("POST", "/api/books", AGENT, BookJson, max_body=5)
    async def add(self, request: HttpRequest, body: BookBody) -> HttpResponse:
        """Add a book."""
        return json_response({"title": body.title})

    @asgi_routes.route("POST", "/api/books/lend", AGENT, BookJson, body=BookBody)
    async def lend(self, request: HttpRequest) -> HttpResponse:
        """Lend a book."""
        return json_response({"title": ""})


async def test_the_router_gets_the_handler_its_roles_and_what_it_has_to_parse() -> None:
    show, add, lend = bind_routes(BookRoutes("Ada's"))
    assert [(each.method, each.template) for each in (show, add, lend)] == [
        ("GET", "/api/books/{book_id}"),
        ("POST", "/api/books"),
        ("POST", "/api/books/lend"),
    ]
    assert {each.roles for each in (show, add, lend)} == {AGENT}
    assert [(each.body, each.query) for each in (show, add, lend)] == [
        (None, ShelfQuery),
        (BookBody, None),
        (None, None),
    ]
    assert (add.max_body, add.streams) == (5, False)
    assert (show.default_query, add.default_query) == (ShelfQuery(), None)
    answer = await show.handle(None, ShelfQuery())
    assert answer.body == b'{"title":"Ada\'s 3"}'


def test_the_document_is_derived_from_the_same_declaration() -> None:
    document = build_openapi(make_docs_router(BookRoutes).routes, "interlock")
    show = document["paths"]["/api/books/{book_id}"]["get"]
    assert (show["summary"], show["description"]) == ("Show a book", "Show a book. The title names its owner.")
    assert (show["tags"], show["x-roles"]) == (["agents"], ["agent"])
    assert [each["name"] for each in show["parameters"]] == ["book_id", "limit"]
    assert {"200", "400", "401", "403", "404", "503", "default"} == set(show["responses"])
    for path in ("/api/books", "/api/books/lend"):
        content = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert content["schema"]["$ref"].endswith("/BookBody")
        assert list(content["example"].items()) == [("title", "Emma"), ("lent_to", None)]
    assert "example" not in document["components"]["schemas"]["BookBody"]


def test_every_asgi_route_has_a_known_tag_and_a_description() -> None:
    classes = [*ASGI_ROUTES, *(each for protocol in load_protocols() for each in protocol.handlers)]
    routes = [route for handlers in classes for route in declared_routes(handlers)]
    assert len(routes) > 20
    assert [each.template for each in routes if each.docs.tag not in TAGS or not each.docs.text] == []
