"""The same over a server: the agent has a key and no database, and may run on another machine.

interlock serve                                                    in one terminal
interlock keys create --name mailer --role agent --agent mailer    in another one: prints a key
INTERLOCK_KEY=… python examples/07_remote_agent.py http://127.0.0.1:8321
interlock approvals list                                           in a third one, beside the server
interlock approvals approve ID --acknowledge-all                   the program hides an argument: see that
"""

import asyncio
import os
import sys

from interlock import CallRefused, Interlock

lock = Interlock(sys.argv[1], key=os.environ["INTERLOCK_KEY"], agent="mailer", user="alice")


@lock.tool(effect="read")
async def address_of(name: str) -> str:
    return f"{name}@example.com"  # a read needs nobody


@lock.tool(effect="write", describe="Send a mail to {to}", secret=["token"])
async def send_mail(to: str, text: str, token: str) -> str:
    print(f"sending to {to}")  # the real work goes here, in this process: the server runs no tools
    return "sent"


async def main() -> None:
    to = await address_of("bob")
    try:
        print(await send_mail(to, "The report is done.", "t0ken"))
    except CallRefused as refused:
        print(refused.result)


asyncio.run(main())
