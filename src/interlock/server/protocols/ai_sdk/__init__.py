"""The AI SDK's chat page: its UI message stream in front of our own threads.

Of what the page posts, the newest message of the person is taken, or the answers to what is open. All else that stands
in its history (tools, arguments, results, earlier messages) is looked up here, and never read there.
"""

from interlock.server.protocols.ai_sdk.routes import router, streams

__all__ = ["router", "streams"]
