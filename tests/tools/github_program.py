"""A program that creates an issue on GitHub and that tests kill."""

from __future__ import annotations

import asyncio
import sys

from interlock.app.bootstrap import build_services
from interlock.chat.tool import ToolContext, ToolInvocation
from interlock.chat.tools import github as pack


async def main(database: str, url: str, token: str) -> None:
    services = build_services(database)
    await services.store.open()
    try:
        kit = ToolContext("default", services.store.tool_items("default"), {"token": token, "url": url})
        (tool,) = [tool for tool in pack.write_tools(kit) if tool.name == "github_create_issue"]
        print(await tool.run(ToolInvocation({"repo": "octo/hello", "title": "Fix"}, "the-key")))
    finally:
        await services.store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
