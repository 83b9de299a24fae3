"""A scripted model for CrewAI, and quiet: nothing leaves the machine, and nothing but the last line is printed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def quiet() -> None:
    os.environ |= {
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_DISABLE_TRACKING": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "OTEL_SDK_DISABLED": "true",
        "CREWAI_STORAGE_DIR": os.getcwd(),
    }


quiet()

from crewai import BaseLLM  # noqa: E402  after its telemetry was switched off


class ScriptedModel(BaseLLM):
    """Asked with the results that the model has got so far, `script` gives calls, or the last word."""

    def __init__(self, script: Callable[[list[str]], Any]) -> None:
        super().__init__(model="scripted")
        self._script = script

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, tools: Any = None, *_: Any, **__: Any) -> Any:
        wanted = self._script([str(each["content"]) for each in messages if each["role"] == "tool"])
        if isinstance(wanted, str):
            return wanted
        return [
            {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.args}}
            for call in wanted
        ]
