"""AG-UI 1.0, as CopilotKit and other front ends speak it: what a client posts. What it is told: parts/ag_ui_run.py.

Of all that it posts, four things are read: its name for the thread, the text of a new message, the ids of interrupts,
and what was answered to them. The conversation, its calls and their arguments are looked up.
"""

from interlock.server.protocols.ag_ui.routes import router, streams

__all__ = ["router", "streams"]
