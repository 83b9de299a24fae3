"""Tools that are plain functions: a read that asks nobody, a write and a deletion that ask, and what a "no" looks like.

python examples/02_sync_tools.py              in one terminal: it waits twice
interlock approvals watch                     in another one: approve, edit, answer or reject
"""

import sys

from interlock import CallAnswered, CallRefused, Interlock

lock = Interlock(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db")
pages = {"home": "Welcome.", "draft": "To be written."}


@lock.tool(effect="read")
def list_pages() -> list[str]:
    return sorted(pages)


@lock.tool(effect="write", describe="Publish page {name!r}")
def publish(name: str, text: str) -> int:
    pages[name] = text
    return len(pages)


@lock.tool(effect="destructive", describe=lambda args: f"Permanently delete page {args['name']!r}?")
def delete_page(name: str) -> None:
    del pages[name]


print("pages:", list_pages())
for act in (lambda: publish("news", "We are open."), lambda: delete_page("draft")):
    try:
        act()
    except CallRefused as refused:
        print("a person said no:", refused.result["reason"])
    except CallAnswered as answered:
        print("a person answered instead:", answered.result)
print("pages:", list_pages())
