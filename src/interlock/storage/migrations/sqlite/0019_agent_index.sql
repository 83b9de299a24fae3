-- since: 2
-- An agent's calls by time: its activity is read without the calls of others.

create index approvals_by_agent on approvals (workspace, agent, created_at);
