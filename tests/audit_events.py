"""Audit events that helpers raise with `sys.audit` when they start something costly; `workload.py` counts them."""

SERVER_STARTED = "interlock.tests.server_started"
DATABASE_STARTED = "interlock.tests.database_started"
PAGE_OPENED = "interlock.tests.page_opened"
