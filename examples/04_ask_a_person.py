"""The agent asks a person: in free words, with choices, and with a form.

python examples/04_ask_a_person.py                          in one terminal: it waits three times
interlock approvals respond ID "for the spring catalogue"   in another one
interlock approvals respond ID blue
interlock approvals respond ID '{"copies": 200}'
"""

import asyncio
import sys

from interlock import CallRefused, Interlock

lock = Interlock(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db")
FORM = {
    "type": "object",
    "properties": {"copies": {"type": "integer", "minimum": 1}},
    "required": ["copies"],
    "additionalProperties": False,
}


async def main() -> None:
    try:
        print("what for:", await lock.ask("What is the print for?"))
        print("colour:", await lock.ask("Which colour?", choices=["red", "blue"]))
        print("form:", await lock.ask("How many copies?", schema=FORM))
    except CallRefused as refused:
        print(refused)  # nobody answered in time


asyncio.run(main())
