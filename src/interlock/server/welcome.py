"""Small pages until there is a web app: what is running, signing in, and opening a one-time link."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from interlock import __version__
from interlock.core.card import visible
from interlock.core.errors import Error, Unauthenticated
from interlock.server.routing import Given, Guard, Here
from interlock.web.asgi import Asked
from interlock.web.auth import Auth
from interlock.web.site import Site

DATABASES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "postgresql": "PostgreSQL"}
router = APIRouter(include_in_schema=False)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
KINDS = {"js": "text/javascript", "css": "text/css", "html": "text/html"}


@router.get("/")
async def first_page(site: Here, asked: Given, guard: Guard) -> Response:
    facts = {
        "VERSION": __version__,
        "DATABASE": DATABASES.get(site.settings.storage.url.partition("://")[0], ""),  # not where it is
        "READY": await _ready(site),
        "WHO": await _who(guard, asked),
    }
    return _page("index.html", facts)


@router.get("/signin")
async def signin_page(site: Here) -> Response:
    """The provider's button is there only if there is one."""
    return _page("signin.html", {"OIDC": "" if site.settings.server.oidc else "hidden"})


@router.get("/welcome")
async def welcome_page() -> Response:
    """The token stands behind the #, so that it comes with no request; looking at the page spends nothing."""
    return _page("welcome.html", {})


@router.get("/pages.js")
async def script() -> Response:
    return _answer("pages.js", _file("pages.js"))


@router.get("/pages.css")
async def style() -> Response:
    return _answer("pages.css", _file("pages.css"))


@router.get("/docs.css")
async def docs_style() -> Response:
    return _answer("docs.css", _file("docs.css"))


async def _ready(site: Site) -> str:
    try:
        await site.store.head("default")
    except Error as error:
        return f"not ready: {error.message}"
    return "ready"


async def _who(guard: Auth, asked: Asked) -> str:
    """The page is there for everybody, so that a session that ended is no error."""
    try:
        who = await guard.principal(asked)
    except Unauthenticated:
        return "You are not signed in."
    except Error:
        return "Who you are cannot be looked up now."
    return f"You are signed in as {visible(who.name)} ({who.role} of {who.workspace})."


def _page(name: str, facts: dict[str, Any]) -> Response:
    text = _file(name)
    for key, value in facts.items():
        text = text.replace(f"[{key}]", escape(str(value)))
    return _answer(name, text)


def _answer(name: str, text: str) -> Response:
    headers = {"content-security-policy": POLICY, "referrer-policy": "same-origin"}
    return Response(text, headers=headers, media_type=KINDS[name.rpartition(".")[2]])


@cache
def _file(name: str) -> str:
    return files("interlock.server").joinpath("pages", name).read_text(encoding="utf-8")
