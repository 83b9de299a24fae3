-- since: 2
-- Every change of an approval's status adds an entry to each index that holds it: calls without an agent's name, and
-- without an owner, need none in the indexes of agents and of owners.

drop index approvals_by_agent;
create index approvals_by_agent on approvals (workspace, agent, created_at) where agent <> '';

drop index approvals_by_owner;
create index approvals_by_owner on approvals (workspace, owner) where status = 'pending' and owner <> '';
