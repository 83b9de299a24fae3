"""In which order a transaction writes, and which writes have to find what was read."""

from __future__ import annotations

# The order of the sets in a transaction: rows before what is updated or erased in them, the head last.
NAMES = (
    "insert_workspace",
    "insert_terms",
    "insert_spec",
    "insert_tool",
    "insert_approval",
    "insert_payload",
    "advance_approval",
    "update_approval",
    "erase_approval",
    "edit_payload",
    "end_payload",
    "erase_payload",
    "step_back",  # locks the mark before any document, as whoever indexes does: else both could wait for each other
    "insert_doc",
    "change_doc",
    "erase_doc",  # after the others: of what one batch says about an approval, this counts
    "write_grant",
    "write_run",
    "write_thread",
    "wake_thread",  # what woke a thread in this batch counts, whatever became of the thread in it
    "ready_thread",
    "insert_line",
    "write_draft",
    "drop_draft",
    "insert_policy",
    "write_agent",
    "write_user",
    "write_password",
    "write_subject",
    "erase_user",
    "insert_key",
    "revoke_key",
    "touch_key",
    "erase_keys",
    "insert_session",
    "end_session",
    "insert_link",
    "spend_link",
    "claim_answer",
    "take_answer",
    "keep_answer",
    "drop_answer",
    "hide_answers",
    "forget_answer",
    "write_record",
    "delete_record",
    "insert_applied",
    "forget_applied",
    "write_reads",
    "insert_event",
    "insert_content",
    "erase_content",
    "write_mark",
    "write_tally",
    "write_head",
)
ORDER = {name: place for place, name in enumerate(NAMES)}
COMPARED = frozenset({"update_approval", "advance_approval", "erase_approval"})
