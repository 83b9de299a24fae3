"""What is pending, and how it ended: a program lists approvals over its database.

python examples/24_list_approvals.py          in one terminal: it lists two calls, and waits for them
interlock approvals watch                     in another one: decide them

With Interlock("https://…", key=…) it is the same over a server, where an agent's key lists its own calls.
"""

import asyncio
import sys

from interlock import ApprovalRecord, Interlock, NotRun


async def main(url: str) -> None:
    async with Interlock(url, agent="mailer") as lock:

        @lock.tool(effect="write", describe="Send {text!r} to {to}")
        async def send_mail(to: str, text: str) -> str:
            return f"sent to {to}"

        mails = [asyncio.create_task(send_mail(to, "Clear sky.")) for to in ("alice", "bob")]
        pending: list[ApprovalRecord] = []
        while len(pending) < len(mails):  # until both have asked
            await asyncio.sleep(0.1)
            pending = [each async for each in lock.approvals(status="pending", agent="mailer")]
        for approval in pending:
            print(f"pending until {approval.expires_at:%d %B, %H:%M}: {approval.sentence}", flush=True)

        for ended in await asyncio.gather(*mails, return_exceptions=True):
            print(f"not sent: {ended}" if isinstance(ended, NotRun) else ended, flush=True)
        async for approval in lock.approvals(agent="mailer"):
            by = approval.decision.by if approval.decision else "nobody"
            print(f"{approval.sentence}: {approval.status}, decided by {by}", flush=True)
        print("in all:", {status: n for status, n in (await lock.stats()).by_status.items() if n})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db"))
