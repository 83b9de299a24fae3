-- since: 2
-- Rejections by the end of their undo window, so that the few which can still be undone are found without the others.

create index approvals_by_release on approvals (workspace, release_at) where release_at is not null;
