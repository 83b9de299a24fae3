"""Runs a tool's function inside an engine, whose event loop carries other workflows too."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any


async def called(function: Callable[..., Any], args: Mapping[str, Any]) -> Any:
    """With its arguments by name; one that is not async has a thread of its own."""
    if inspect.iscoroutinefunction(function):
        return await function(**args)
    given = await asyncio.to_thread(partial(function, **args))
    return await given if inspect.isawaitable(given) else given
