"""The kinds of records that the stand-in keeps, and how it writes times. Needs nothing that is installed apart."""

from __future__ import annotations

from datetime import UTC, datetime

ISSUE = "linear_issue"
TYPE_NAMES = {
    ISSUE: "Issue",
    "linear_comment": "Comment",
    "linear_cycle": "Cycle",
    "linear_label": "IssueLabel",
    "linear_project": "Project",
    "linear_project_status": "ProjectStatus",
    "linear_state": "WorkflowState",
    "linear_team": "Team",
    "linear_user": "User",
}
KINDS = tuple(TYPE_NAMES)


def format_time(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds // 1000, UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"
