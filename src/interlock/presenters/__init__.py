"""Approvals, policies and grants as others see them: one JSON and one wording for all interfaces."""
