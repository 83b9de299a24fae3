"""The list of changes that an edit made."""

from __future__ import annotations

from interlock.core.approval.vote import MAX_CHANGES, args_diff
from interlock.core.call import ToolSpec, redact
from interlock.core.canonical import canonical

SPEC = ToolSpec("pay", "write", secret=("/token",))


def changes(old: object, new: object) -> dict[str, object]:
    return args_diff(redact(canonical(old), SPEC, b"k" * 32), redact(canonical(new), SPEC, b"k" * 32))


# R41
def test_what_was_changed_added_and_removed_is_told_as_people_saw_it() -> None:
    result = changes(
        {"to": "bob", "amount": 1, "cc": ["x"], "same": 1}, {"to": "bob\u202e", "amount": 1.5, "same": 1, "new": None}
    )
    assert result == {
        "changed": 4,
        "changes": [
            {"name": "/amount", "before": "1", "after": "1.5"},
            {"name": "/cc/0", "before": '"x"', "after": None},
            {"name": "/to", "before": '"bob"', "after": '"bob\\u{202e}"'},
            {"name": "/new", "before": None, "after": "null"},
        ],
    }
    assert changes({"a": {}}, {"a": {}}) == {"changed": 0, "changes": []}


# R47
def test_a_secret_stays_one() -> None:
    [change] = changes({"token": "old-secret"}, {"token": "new-secret"})["changes"]  # type: ignore[misc]
    assert "fingerprint" in change["before"]
    assert change["before"] != change["after"]
    assert "secret" not in f"{change['before']}{change['after']}"


def test_long_values_are_abbreviated_and_the_list_of_changes_is_limited() -> None:
    [change] = changes({"text": "a" * 5_000}, {"text": "a" * 2_500 + "b" + "a" * 2_499})["changes"]  # type: ignore[misc]
    assert change["before"] != change["after"]
    assert max(len(change["before"]), len(change["after"])) < 450
    result = changes({}, {f"n{n}": n for n in range(MAX_CHANGES + 5)})
    assert (result["changed"], len(result["changes"])) == (MAX_CHANGES + 5, MAX_CHANGES)  # type: ignore[arg-type]
