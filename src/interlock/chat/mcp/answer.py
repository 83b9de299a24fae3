"""What a server answered, as JSON of a bounded size."""

from __future__ import annotations

import json

import mcp_types as types

from interlock.core.canonical import canonical
from interlock.core.errors import InvalidRequest, ToolFailed

MAX_ANSWER = 100_000  # characters
MAX_ERROR = 2_000


def parse_tool_result(server: str, tool: str, result: types.CallToolResult | types.InputRequiredResult) -> object:
    """Raises ToolFailed where the server reports an error, or asks instead of answering."""
    if isinstance(result, types.InputRequiredResult):
        raise ToolFailed(
            f'The MCP server "{server}" asked for input in the middle of {tool} and was given none: questions of a '
            "server are not answered, since the decision was made before. Call it with all that it needs."
        )
    text = "\n".join(map(_text, result.content)).replace("\x00", "")
    if result.is_error:
        raise ToolFailed(f'The MCP server "{server}" says that {tool} failed: {_cut(text, MAX_ERROR) or "no reason"}')
    structured = _structured_text(result.structured_content)
    if structured is None:
        return {"text": _cut(text, MAX_ANSWER)}
    if len(structured) > MAX_ANSWER:
        return {"text": _cut(structured, MAX_ANSWER)}
    value = {"structured": json.loads(structured)}
    return (
        value if _repeats_structured(text, structured) else {**value, "text": _cut(text, MAX_ANSWER - len(structured))}
    )


def _structured_text(content: object) -> str | None:
    if content is None:
        return None
    try:
        return canonical(content).decode()
    except InvalidRequest:  # NUL, or deeper than anybody needs: the text has to do
        return None


def _repeats_structured(text: str, structured: str) -> bool:
    """Servers repeat what is structured as a text, for clients that know texts only."""
    try:
        return not text or canonical(json.loads(text)).decode() == structured
    except (ValueError, RecursionError, InvalidRequest):
        return False


def _text(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent() | types.AudioContent():
            return f"[{block.mime_type}, {len(block.data) * 3 // 4:,} bytes, not shown]"
        case types.ResourceLink():
            return f"[{block.name}: {block.uri}]"
        case types.EmbeddedResource(resource=types.TextResourceContents() as inner):
            return inner.text
        case _:
            return f"[{block.resource.uri}, not shown]"


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: max(most, 0)]}\n[cut here: {len(text):,} characters in all]"
