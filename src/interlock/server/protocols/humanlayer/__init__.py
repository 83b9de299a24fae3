"""HumanLayer's SDK, unmodified: function calls that people approve, and questions that they answer.

Its program runs the function itself as soon as it reads `approved: true`, and never says what came of it. So a yes is
told once: the first look that finds it starts the call and ends it as handed over, and every later look is refused.
"""

from interlock.server.protocols.humanlayer.routes import router

__all__ = ["router"]
