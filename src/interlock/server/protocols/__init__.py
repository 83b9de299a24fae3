"""Protocols of existing clients and front ends: one module each, found by its name, which only translates.

A module has a `router` with its plain routes, and in `HANDLERS` the classes of its streaming ones. Of what a client
posts, only ids, decisions and the identity of the signed-in person are trusted: tools, arguments and history are looked
up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from fastapi import APIRouter


class ProtocolRoutes(NamedTuple):
    """`handlers` are the classes of its streaming routes."""

    router: APIRouter
    handlers: Sequence[type]


@cache
def load_protocols() -> list[ProtocolRoutes]:
    """Load every module and package of this folder."""
    modules = [import_module(f"{__name__}.{name}") for name in sorted(each.name for each in iter_modules(__path__))]
    return [ProtocolRoutes(module.router, getattr(module, "HANDLERS", ())) for module in modules]
