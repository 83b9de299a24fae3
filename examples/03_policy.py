"""A policy decides who is asked: nobody, one person, two people from finance, or the answer is no. See 03_policy.yaml.

interlock users add carol --team finance      once: two people from finance
interlock users add dave --team finance
python examples/03_policy.py                  in one terminal: it waits twice
interlock approvals approve ID                in another one: anybody may approve the 20
interlock approvals approve ID --user carol   the 5000 need both of them
interlock approvals approve ID --user dave
"""

import asyncio
import sys
from pathlib import Path

from interlock import CallRefused, Interlock

url = sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db"
lock = Interlock(url, policy=Path(__file__).with_suffix(".yaml"))


@lock.tool(effect="write", describe="Pay {amount} to {to}")
async def pay(to: str, amount: int) -> str:
    return f"paid {amount} to {to}"


async def main() -> None:
    for to, amount in (("corner shop", 5), ("blocked", 5), ("corner shop", 20), ("car dealer", 5000)):
        try:
            print(await pay(to, amount))
        except CallRefused as refused:
            print(refused)


asyncio.run(main())
