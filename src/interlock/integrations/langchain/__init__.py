"""LangChain and LangGraph: a middleware for `create_agent`, and the same gate for `ToolNode` and for plain graphs.

A call that waits for people pauses the graph in its own checkpointer. Whatever it is resumed with, what counts is the
decision that stands in Interlock.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.integrations.langchain.gate import (
        Gate,
        InterlockMiddleware,
        approvals_field,
        each_call,
        gated_subagents,
        resumer,
    )

__all__ = [  # noqa: PLE0604, RUF100  loaded on first use: the wire shapes are read without LangChain
    "Gate",
    "InterlockMiddleware",
    "approvals_field",
    "each_call",
    "gated_subagents",
    "resumer",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("interlock.integrations.langchain.gate"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
