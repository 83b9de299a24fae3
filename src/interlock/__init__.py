"""The safety interlock between AI agents and the real world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.app.executor import current_execution
    from interlock.chat.tool import ToolContext
    from interlock.core.call import ToolCall, ToolSpec, propose
    from interlock.core.decision import Acknowledgement, Approve, Edit, Reject, Respond, Reviewer
    from interlock.core.errors import (
        CallAnswered,
        CallFailed,
        CallRefused,
        CallUnknown,
        CallWouldFail,
        EffectUnknown,
        Error,
        Misconfigured,
        NotRun,
        StoreUnavailable,
        ToolFailed,
    )
    from interlock.core.outcome import Answered, Finished, Proceed, Refused, Waiting
    from interlock.core.preview import Preview, items_version
    from interlock.presenters.model_message import refusal_message, to_model_message
    from interlock.runtime.functions import tool
    from interlock.sdk.backend import ApprovalDecision, ApprovalRecord, ApprovalStats
    from interlock.sdk.interlock import Interlock

_EXPORTS = {
    "app.executor": ("current_execution",),
    "chat.tool": ("ToolContext",),
    "core.call": ("ToolCall", "ToolSpec", "propose"),
    "core.decision": ("Approve", "Edit", "Reject", "Respond", "Reviewer", "Acknowledgement"),
    "core.errors": (
        "CallAnswered",
        "CallFailed",
        "CallRefused",
        "CallUnknown",
        "CallWouldFail",
        "EffectUnknown",
        "Error",
        "Misconfigured",
        "NotRun",
        "StoreUnavailable",
        "ToolFailed",
    ),
    "core.outcome": ("Answered", "Finished", "Proceed", "Refused", "Waiting"),
    "core.preview": ("Preview", "items_version"),
    "presenters.model_message": ("refusal_message", "to_model_message"),
    "runtime.functions": ("tool",),
    "sdk.backend": ("ApprovalDecision", "ApprovalRecord", "ApprovalStats"),
    "sdk.interlock": ("Interlock",),
}

__version__ = "0.1.0"
__all__ = [  # noqa: PLE0604, RUF100  loaded on first use, so that importing core does not load the rest
    "Acknowledgement",
    "Answered",
    "ApprovalDecision",
    "ApprovalRecord",
    "ApprovalStats",
    "Approve",
    "CallAnswered",
    "CallFailed",
    "CallRefused",
    "CallUnknown",
    "CallWouldFail",
    "Edit",
    "EffectUnknown",
    "Error",
    "Finished",
    "Interlock",
    "Misconfigured",
    "NotRun",
    "Preview",
    "Proceed",
    "Refused",
    "Reject",
    "Respond",
    "Reviewer",
    "StoreUnavailable",
    "ToolCall",
    "ToolContext",
    "ToolFailed",
    "ToolSpec",
    "Waiting",
    "current_execution",
    "items_version",
    "propose",
    "refusal_message",
    "to_model_message",
    "tool",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module, names in _EXPORTS.items():
        if name in names:
            return getattr(import_module(f"interlock.{module}"), name)
    raise AttributeError(f"module 'interlock' has no attribute {name!r}")
