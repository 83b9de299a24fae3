"""All that `--demo` brings, in one value: nothing else of the package imports the demo."""

from __future__ import annotations

from interlock.chat.agents import ASSISTANT, BUILT_IN
from interlock.chat.assistant import Demo
from interlock.config.models import Agent
from interlock.demo.calls import fill
from interlock.demo.linear.standin import StandIn

WRITER = "writer"
_WRITER = Agent(
    instructions="You look after the posts of the web site: read, publish, archive and delete them.", tools=("cms",)
)
_ASSISTANT = Agent(instructions=BUILT_IN[ASSISTANT].instructions, tools=BUILT_IN[ASSISTANT].tools, agents=(WRITER,))
DEMO = Demo({ASSISTANT: _ASSISTANT, WRITER: _WRITER}, StandIn, fill)
