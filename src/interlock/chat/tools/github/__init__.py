"""GitHub: issues, comments, pull requests and reviews. Settings: `token`, and `url` for a server of your own.

GitHub has no idempotency key. So what is written carries a hidden mark made of the call's key, which is looked for
before each try, in all that changed since shortly before the first try: a second try makes nothing a second time.
"""

from interlock.chat.tools.github.pack import reads, writes

__all__ = ["reads", "writes"]
