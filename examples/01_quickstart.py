"""A tool that waits for a person, then runs at most once.

python examples/01_quickstart.py              in one terminal: it waits
interlock approvals list                      in another one
interlock approvals approve ID
"""

import asyncio
import sys

from interlock import Interlock

lock = Interlock(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db")


@lock.tool(effect="write", describe="Create issue {title!r}")
async def create_issue(title: str, assignee: str | None = None) -> dict[str, object]:
    print(f"creating {title!r}")  # the real work goes here
    return {"id": 1, "title": title, "assignee": assignee}


print(asyncio.run(create_issue(title="Fix login")))
