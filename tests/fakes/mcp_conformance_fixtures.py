"""Tools, prompts and resources of the server under test of the MCP conformance suite.

The names are the suite's (tests/vendor/mcp); what each says and asks is what its scenarios call for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mcp_types as types

Json = dict[str, Any]
NAMES = json.loads((Path(__file__).parents[1] / "vendor" / "mcp" / "conformance-fixture-names.json").read_text())
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
# Two more that scenarios of the suite call, though the list of names does not have them.
MORE_TOOLS = ("test_streaming_elicitation", "test_logging_tool")
PLAIN: Json = {"type": "object", "properties": {}}

OFFERED_TOOLS = [
    types.Tool(name=tool["name"], description=f"Fixture {tool['name']}", input_schema=tool["input_schema"])
    for tool in [*NAMES["tools"], *({"name": name, "input_schema": PLAIN} for name in MORE_TOOLS)]
]
OFFERED_PROMPTS = [
    types.Prompt(
        name=prompt["name"],
        description=f"Fixture {prompt['name']}",
        arguments=[types.PromptArgument(name=name, required=True) for name in prompt["arguments"]],
    )
    for prompt in NAMES["prompts"]
]
OFFERED_RESOURCES = [
    types.Resource(uri=uri, name=uri.removeprefix("test://"), description=f"Fixture {uri}")
    for uri in NAMES["resources"]
]
OFFERED_TEMPLATES = [
    types.ResourceTemplate(uri_template=uri, name="template", description=f"Fixture {uri}")
    for uri in NAMES["resource_templates"]
]

TEXTS = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "Watched resource content.",
}


def text(said: str) -> types.TextContent:
    return types.TextContent(text=said)


def embedded(uri: str, mime_type: str, said: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=said))


CONTENTS: dict[str, list[types.ContentBlock]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [types.ImageContent(data=PNG, mime_type="image/png")],
    "test_audio_content": [types.AudioContent(data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        types.ImageContent(data=PNG, mime_type="image/png"),
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
}


def form(message: str, **properties: Json) -> types.ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(question: str) -> types.CreateMessageRequest:
    messages = [types.SamplingMessage(role="user", content=text(question))]
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=messages, max_tokens=100))


WORD: Json = {"type": "string"}
ROOTS = types.ListRootsRequest()
NAME = form("What is your name?", name=WORD)
CONFIRM = form("Please confirm", ok={"type": "boolean"})

# The requests of each round, for tools that ask by `input_required`; those with a state ask for it back.
ROUNDS: dict[str, list[dict[str, types.InputRequest]]] = {
    "test_input_required_result_elicitation": [{"user_name": NAME}],
    "test_input_required_result_sampling": [{"capital_question": sampling("What is the capital of France?")}],
    "test_input_required_result_list_roots": [{"client_roots": ROOTS}],
    "test_input_required_result_request_state": [{"confirm": CONFIRM}],
    "test_input_required_result_tampered_state": [{"confirm": CONFIRM}],
    "test_input_required_result_multiple_inputs": [
        {"user_name": NAME, "greeting": sampling("Generate a greeting"), "client_roots": ROOTS}
    ],
    "test_input_required_result_multi_round": [
        {"step1": form("Step 1: What is your name?", name=WORD)},
        {"step2": form("Step 2: What is your favorite color?", color=WORD)},
    ],
    "test_input_required_result_capabilities": [{"greeting": sampling("Generate a greeting"), "user_name": NAME}],
    "test_streaming_elicitation": [{"user_name": NAME}],
    "test_input_required_result_prompt": [
        {"user_context": form("What context should the prompt use?", context=WORD)},
    ],
}
WITH_STATE = {
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
}

DEFAULTS: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}


def titled(*names: str) -> list[Json]:
    return [{"const": f"value{count}", "title": name} for count, name in enumerate(names, 1)]


OPTIONS = ["option1", "option2", "option3"]
ENUMS: Json = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": titled("First Option", "Second Option", "Third Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("First Choice", "Second Choice", "Third Choice")}},
    },
    "required": [],
}
TALKS = {
    "test_elicitation_sep1034_defaults": ("Please check the defaults", DEFAULTS),
    "test_elicitation_sep1330_enums": ("Please choose", ENUMS),
}
USER: Json = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
