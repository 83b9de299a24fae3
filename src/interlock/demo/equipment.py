"""All that `--demo` brings, in one value: nothing else of the package imports the demo."""

from __future__ import annotations

from interlock.chat.agents import ASSISTANT, BUILT_IN
from interlock.chat.assistant import DemoSetup
from interlock.config.models import AgentSettings
from interlock.demo.calls import fill_demo
from interlock.demo.linear.standin import FakeLinear

WRITER = "writer"
_WRITER = AgentSettings(
    instructions="You look after the posts of the web site: read, publish, archive and delete them.", tools=("cms",)
)
_ASSISTANT = AgentSettings(
    instructions=BUILT_IN[ASSISTANT].instructions, tools=BUILT_IN[ASSISTANT].tools, agents=(WRITER,)
)
DEMO = DemoSetup({ASSISTANT: _ASSISTANT, WRITER: _WRITER}, FakeLinear, fill_demo)
