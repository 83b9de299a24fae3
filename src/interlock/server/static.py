"""The web app: one HTML page for all its paths, and its static files."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import Response

from interlock.core.errors import Misconfigured, NotFound
from interlock.server.dependencies import StateDep
from interlock.server.state import ServerState

router = APIRouter(include_in_schema=False)

# Styles that libraries create at run time carry the nonce; scripts are files of ours, and nothing else.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_PATHS = (
    "/",
    "/signin",
    "/welcome",
    "/chat",
    "/chat/{thread_id}",
    "/inbox",
    "/a/{approval_id}",
    "/history",
    "/statistics",
    "/agents",
    "/agents/{name}",
    "/connect",
    "/content",
    "/content/{kind}",
    "/content/{kind}/{item_id}",
    "/okrs",
    "/okrs/{objective_id}",
    "/policy",
    "/settings",
    "/settings/{tab}",
)
IMMUTABLE = "public, max-age=31536000, immutable"  # a file with other content has another name
NOT_BUILT = "The page is not built. In a checkout: make page, then start again. The routes are listed at /docs."
READ_METHODS = ["GET", "HEAD"]
API_PREFIX = "/api/"  # who opens one of these in a browser wants its answer, not a page
ENCODINGS = {"br": ".br", "gzip": ".gz"}  # the smaller first; the suffix of the compressed file


MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}  # browsers trust the type, and the lists of machines differ


class StaticFile(NamedTuple):
    content: bytes
    compressed: Mapping[str, bytes]  # by encoding, in the order of ENCODINGS


async def serve_page(state: StateDep) -> Response:
    """The HTML page. Loading it changes nothing; its data comes from the routes, which check permissions."""
    shell = _built_files().get("index.html")
    if shell is None:
        raise Misconfigured(NOT_BUILT)
    return _page_response(shell, state, 200)


def missing_page(request: Request, state: ServerState) -> Response | None:
    """The page for a mistyped address that somebody opened in a browser: it says so, and leads back."""
    is_opened = request.method in READ_METHODS and "text/html" in request.headers.get("accept", "")
    shell = _built_files().get("index.html")
    if not is_opened or shell is None or request.url.path.startswith(API_PREFIX):
        return None
    return _page_response(shell, state, 404)


def _page_response(shell: StaticFile, state: ServerState, status: int) -> Response:
    nonce = secrets.token_urlsafe(16)
    text = shell.content.decode().replace("[NONCE]", nonce)
    text = text.replace("[PROVIDER]", "oidc" if state.settings.server.oidc else "")
    headers = {"content-security-policy": CONTENT_SECURITY_POLICY.format(nonce=nonce), "referrer-policy": "no-referrer"}
    return Response(text, status, headers=headers, media_type=MEDIA_TYPES[".html"])


for address in PAGE_PATHS:
    router.api_route(address, methods=READ_METHODS)(serve_page)


@router.api_route("/assets/{name}", methods=READ_METHODS)
async def serve_asset(name: str, request: Request) -> Response:
    return _file_response(f"assets/{name}", request, IMMUTABLE)


@router.api_route("/icon.svg", methods=READ_METHODS)
async def serve_icon(request: Request) -> Response:
    return _file_response("icon.svg", request, "max-age=86400")


@router.get("/docs.css")
async def docs_style() -> Response:
    return Response(_docs_style(), media_type=MEDIA_TYPES[".css"])


def _file_response(name: str, request: Request, kept: str) -> Response:
    found = _built_files().get(name)
    if found is None:
        raise NotFound("There is no such file. Reload the page.")
    kind = MEDIA_TYPES.get(PurePosixPath(name).suffix, "application/octet-stream")
    headers = {"cache-control": kept, "vary": "accept-encoding"}
    accepted = _accepted_encodings(request)
    for encoding, content in found.compressed.items():
        if encoding in accepted:
            return Response(content, headers={**headers, "content-encoding": encoding}, media_type=kind)
    return Response(found.content, headers=headers, media_type=kind)


def _accepted_encodings(request: Request) -> set[str]:
    """By name; one with a weight of zero is refused."""
    offers = [offer.replace(" ", "").partition(";") for offer in request.headers.get("accept-encoding", "").split(",")]
    return {name.lower() for name, _, weight in offers if not _ZERO_WEIGHT.fullmatch(weight)}


_ZERO_WEIGHT = re.compile(r"q=0(\.0*)?", re.IGNORECASE)


@cache
def _built_files() -> Mapping[str, StaticFile]:
    """All files by name, read once: no requested name leads to the disk."""
    top = files("interlock.server").joinpath("ui")
    found = {**_read_folder(top, ""), **_read_folder(top.joinpath("assets"), "assets/")}
    plain = [name for name in found if not name.endswith(tuple(ENCODINGS.values()))]
    return {
        name: StaticFile(
            found[name],
            {encoding: found[name + suffix] for encoding, suffix in ENCODINGS.items() if name + suffix in found},
        )
        for name in plain
    }


def _read_folder(folder: Traversable, before: str) -> dict[str, bytes]:
    if not folder.is_dir():
        return {}
    return {before + each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}


@cache
def _docs_style() -> bytes:
    return files("interlock.server").joinpath("pages", "docs.css").read_bytes()
