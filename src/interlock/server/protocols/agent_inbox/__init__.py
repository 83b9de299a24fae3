"""LangChain's Agent Inbox, unchanged: an approval is a thread that was interrupted, and the answer resumes it.

Of what is posted an id and an answer count. An answer carries no digest: it is taken only where nobody edited the call
and nothing was found in it, or where it repeats the arguments exactly.
"""

from interlock.server.protocols.agent_inbox.routes import router

__all__ = ["router"]
