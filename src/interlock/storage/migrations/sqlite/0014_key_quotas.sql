-- since: 2
-- Quotas of a single agent key, and an index to count the pending calls of its owner by.

alter table keys add column per_minute integer;  -- calls that are recorded in a minute; 0: no limit, null: the server's
alter table keys add column pending    integer;  -- calls that are pending at once; likewise
create index approvals_by_owner on approvals (workspace, owner, status) where status = 'pending';
