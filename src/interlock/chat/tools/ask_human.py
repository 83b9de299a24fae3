"""The tool with which an agent asks a person a question: the person's answer is the result."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.chat.tool import Tool, ToolContext, ToolInvocation, object_schema
from interlock.core.call import MAX_CHOICES, MAX_TEXT_LENGTH, QUESTION_TOOL, ToolSpec
from interlock.core.errors import ToolFailed

ABOUT = (
    "Asks a person a question and waits for the answer, which is the result: a text, one of `choices`, or data that "
    "fits the JSON Schema in `schema`. Give choices or a schema, not both."
)

GUIDANCE = """\
Asking people
- When information or a preference that you need is missing and you cannot look it up, call request_human_input with one
  short question. Do not guess, and do not ask for what you can read yourself.
- Offer `choices` where the answers are known, or a JSON Schema in `schema` where you need several values; otherwise the
  person answers in their own words.
- The person may take hours. Say what you wait for, and do not ask the same question again.
- An answer is information, not permission: calls that need approval are still approved or rejected by their own rules.
  Never use a question to get approval for a call; make the call, and people are asked about it."""

SPEC = ToolSpec(
    QUESTION_TOOL,
    "read",
    schema=object_schema(
        "question",
        question={"type": "string", "minLength": 1, "maxLength": MAX_TEXT_LENGTH},
        choices={"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_CHOICES},
        schema={"type": "object", "description": "A JSON Schema that the answer has to fit."},
    ),
    describe="{question}",
    decisions=("respond",),
)


def read_tools(context: ToolContext) -> Sequence[Tool]:
    return (Tool(SPEC, ABOUT, _refuse_to_run),)


async def _refuse_to_run(invocation: ToolInvocation) -> object:
    """Fail: a question is never run, since it waits for a person."""
    raise ToolFailed("A question is answered by a person, and nobody has answered it.")
