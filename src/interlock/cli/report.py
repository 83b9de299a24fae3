"""What `interlock audit verify` says: whether the record is whole, what was erased, and who signed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from interlock.app.audit import Report
from interlock.cli.output import clock_time, print_json, say
from interlock.core.card import visible
from interlock.core.gaps import Taken
from interlock.core.heads import SignedHead, fingerprint
from interlock.presenters.text import counted

MAX_SHOWN = 100  # faults; one altered entry breaks every link behind it


class Seen(NamedTuple):
    """A head that was looked at, and where it stood."""

    name: str
    signed: SignedHead


def tell_report(report: Report, seen: Sequence[Seen], trusted: str, source: str, *, json: bool) -> None:
    signatures = [each for each in seen if each.signed.key]
    if json:
        print_json({**report.to_json(), "signatures": [_signature(each, trusted) for each in signatures]})
        return
    entries = counted(report.entries, "entry", "entries")
    entries += f" after entry {report.since}" if report.since else ""
    if report.faults:
        _tell_faults(report, entries, source)
    else:
        say(f"valid: {entries}, head {report.head.link}")
    if report.erasures:
        say("erased: " + "; ".join(map(_erased, report.erasures)))
    if report.strangers:
        count = counted(report.strangers, "entry is", "entries are")
        say(f"not checked: {count} about approvals that began earlier. Give the earlier export too, before this one.")
    for each in signatures if not report.faults else ():
        _tell_signature(each, trusted)


def _tell_faults(report: Report, entries: str, source: str) -> None:
    for fault in report.faults[:MAX_SHOWN]:
        say(f"entry {fault.seq}: {visible(fault.message)}" if fault.seq else visible(fault.message), style="red")
    if len(report.faults) > MAX_SHOWN:
        say(f"… and {len(report.faults) - MAX_SHOWN:,} more; --json shows all")
    faults = counted(len(report.faults), "fault", "faults")
    say(f"INVALID: {faults} in {entries}. Keep a copy of the {source} as it is.")


def _erased(taken: Taken) -> str:
    """`312 entries by retention since …`, `4 entries of one thread by ann on …`."""
    entries = counted(taken.entries, "entry", "entries")
    if taken.scope == "retention":
        return f"{entries} by retention since {clock_time(taken.since)}"
    who = f"by {visible(taken.actor)}"
    if taken.times == 1:
        return f"{entries} of one {taken.scope} {who} on {clock_time(taken.until)}"
    return f"{entries} of {_plural(taken.scope)} {who}, the last on {clock_time(taken.until)}"


def _plural(scope: str) -> str:
    return "people" if scope == "person" else f"{scope}s"


def _tell_signature(seen: Seen, trusted: str) -> None:
    name, mark = visible(seen.name), fingerprint(seen.signed.key)
    if trusted:
        say(f"signed: {name}, at {clock_time(seen.signed.signed_at)}, by the key that you trust ({mark})")
    else:
        say(f"signed: {name} was not altered since the key {mark} signed it. Whose key that is, this does not show:")
        say("        compare the fingerprint with the one that you were given, or name the key with --key.")


def _signature(seen: Seen, trusted: str) -> dict[str, object]:
    signed = seen.signed
    return {
        "of": seen.name,
        "signed_at": signed.signed_at,
        "key": signed.key,
        "fingerprint": fingerprint(signed.key),
        "trusted": signed.key == trusted,
    }
