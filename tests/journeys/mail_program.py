"""A program that uses the library over a server: `python mail_program.py AGENT LEASE TO …` sends to each of them.

The environment has the address (SERVER) and the key (KEY); each time that its tool runs is a line in the file `ran`.
"""

import os
import sys

from interlock import CallUnknown, Interlock

lock = Interlock(os.environ["SERVER"], key=os.environ["KEY"], agent=sys.argv[1], lease_seconds=float(sys.argv[2]))


@lock.tool(effect="write")
def send(to: str) -> str:
    with open("ran", "a") as file:
        file.write(to + "\n")
    return "sent to " + to


try:
    for name in sys.argv[3:]:
        print(send(name), flush=True)
except CallUnknown:
    print("unknown", flush=True)
    raise
