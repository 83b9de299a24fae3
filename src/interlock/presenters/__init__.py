"""Presenters: approvals, policies and grants as JSON and as text, the same for all interfaces."""
