-- since: 2
-- Every change of an approval's status adds an entry to each index that holds it: calls without an agent's name need
-- none in the index of agents, which is asked for names only.

drop index approvals_by_agent;
create index approvals_by_agent on approvals (workspace, agent, created_at) where agent <> '';
