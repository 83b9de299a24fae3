"""The chat page of the AI SDK: its UI message stream on top of our own threads.

Of a request, only the person's newest message or the answers to open requests are used. The rest of its history (tools,
arguments, results, earlier messages) is looked up here, and never read there.
"""

from interlock.server.protocols.ai_sdk.routes import AiSdkRoutes, router

__all__ = ["HANDLERS", "router"]

HANDLERS = (AiSdkRoutes,)
