-- since: 2
-- Whose a call is: of which agent or key. Calls from before, and those of programs that do not know this, are anybody's.

alter table approvals add column owner text collate "C" not null default '*';
alter table approvals add column known text collate "C" not null default '';   -- what the key proved of its program, as JSON
