"""AG-UI 1.0, the protocol of CopilotKit and other front ends: `routes.py` reads requests, `run.py` writes events.

Only four things of a request are read: its name for the thread, the text of a new message, the ids of interrupts, and
the answers to them. The conversation, its calls and their arguments are looked up.
"""

from interlock.server.protocols.ag_ui.routes import AgUiRoutes, router

__all__ = ["HANDLERS", "router"]

HANDLERS = (AgUiRoutes,)
