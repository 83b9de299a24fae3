"""Workflows of DBOS that wait for people: no workflow is left waiting, no step is done again, each call runs once.

python examples/22_dbos.py                    in one terminal: it waits. Kill it and start it again as you like
interlock approvals list                      in another one
interlock approvals approve ID
"""

# Needs engines

import asyncio
import sys

from dbos import DBOS

from interlock import Interlock, ToolSpec
from interlock.integrations.dbos import Segments

RUN = "invoice-7"
PAY = ToolSpec("pay", "write", describe="Pay {amount} to {to}")
SEND = ToolSpec("send_mail", "write", describe="Send a mail to {to}")


@DBOS.step()
async def look_up(invoice: int) -> dict[str, object]:
    print(f"looked up invoice {invoice}")
    return {"amount": 40, "to": "Acme"}


def pay(amount: int, to: str) -> str:
    return f"paid {amount} to {to}"


def send_mail(to: str, text: str) -> str:
    return f"told {to}: {text}"


async def main(url: str) -> None:
    DBOS(config={"name": "clerk", "system_database_url": "sqlite:///dbos.db", "log_level": "WARNING"})
    with Interlock(url, agent="clerk") as lock:
        segments = Segments(lock.agent())

        @segments.workflow
        async def settle(invoice: int) -> list[object]:
            due = await look_up(invoice)
            paid = await segments.gated(PAY, due, pay)  # the workflow ends here, and goes on from here
            told = await segments.gated(SEND, {"to": "bob", "text": f"Invoice {invoice}: {paid}"}, send_mail)
            return [paid, told]

        DBOS.launch()
        stop = asyncio.Event()
        worker = asyncio.create_task(segments.run_worker(stop))
        await segments.begin(settle, RUN, 7)  # known by its id: begun again, it goes on
        for line in await segments.result(RUN):
            print(line)
        stop.set()
        await worker
        DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["sqlite:///interlock.db"]))
