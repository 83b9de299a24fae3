"""A model of the OpenAI Agents SDK that says what a script says, also as a stream; and what the model was given."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from agents import Model, ModelResponse, Usage, set_tracing_disabled
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from tests.frameworks.programs.model_scripts import LAST_REPLY, Call

set_tracing_disabled(disabled=True)


class ScriptedModel(Model):
    """`next` gets the results since the newest message of the user, and gives calls, or the last words."""

    def __init__(self, next: Callable[[list[str]], tuple[Call, ...] | str]) -> None:
        self.next = next
        self.inputs: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        return ModelResponse(output=self._output(input), usage=Usage(), response_id=None)

    async def stream_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        known: Any = {"id": "response", "created_at": 0, "model": "script", "object": "response"}
        known |= {"tool_choice": "auto", "tools": [], "parallel_tool_calls": True}
        done = Response(output=self._output(input), **known)
        yield ResponseCompletedEvent(type="response.completed", response=done, sequence_number=0)

    def _output(self, input: Any) -> list[Any]:
        self.inputs.append(input)
        said = self.next(results(input)) or LAST_REPLY
        if isinstance(said, str):
            text = ResponseOutputText(type="output_text", text=said, annotations=[])
            return [
                ResponseOutputMessage(
                    id="message", type="message", role="assistant", status="completed", content=[text]
                )
            ]
        return [
            ResponseFunctionToolCall(
                type="function_call", call_id=call.id, name=call.tool, arguments=json.dumps(call.args)
            )
            for call in said
        ]


def results(input: Any) -> list[str]:
    """What the model was told for its calls, since the newest message of the user."""
    items = input if isinstance(input, list) else []
    places = [place for place, item in enumerate(items) if item.get("role") == "user"]
    newest = items[places[-1] :] if places else items
    return [str(item["output"]) for item in newest if item.get("type") == "function_call_output"]
