"""LangChain and LangGraph: a middleware for `create_agent`, and the same gate for `ToolNode` and plain graphs.

A pending call pauses the graph in its own checkpointer. Only the decision recorded in Interlock counts, not the value
that the graph is resumed with.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.integrations.langchain.gate import (
        Gate,
        InterlockMiddleware,
        approvals_field,
        gated_subagents,
        make_resume_function,
        send_each_call,
    )

__all__ = [  # noqa: PLE0604, RUF100  loaded on first use: `interrupts` must be importable without LangChain
    "Gate",
    "InterlockMiddleware",
    "approvals_field",
    "gated_subagents",
    "make_resume_function",
    "send_each_call",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("interlock.integrations.langchain.gate"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
