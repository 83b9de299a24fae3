-- since: 2
-- Freezes: nothing in their scope starts, and the deadlines of what they cover move by their time.

create table freezes (
    workspace   text not null,
    id          text not null,
    scope       text not null,             -- workspace, agent, key or tool
    name        text not null,             -- as it was given; empty for the workspace
    folded      text not null,             -- as it is compared
    reason      text not null,
    created_by  text not null,
    at          integer not null,
    released_at integer,
    released_by text not null,
    settled_at  integer,                   -- every deadline that it held up has been moved
    primary key (workspace, id)
) without rowid;

create index freezes_open on freezes (workspace, at) where settled_at is null;

create table key_agents (                  -- which agents' names a key has used: a freeze of the agent covers it
    workspace text not null,
    agent     text not null,               -- as names are compared
    key_id    text not null,
    primary key (workspace, agent, key_id)
) without rowid;

-- A deadline moves by the time for which it was held up; it never comes earlier.
drop trigger approvals_keep;

create trigger approvals_keep before update of
    workspace, id, run_id, call_id, tool, effect, agent, agent_path, thread_id, requester, idempotent, spec_sha256,
    proposed, created_at on approvals
begin
    select raise(abort, 'illegal transition: what an approval is about never changes');
end;

create trigger approvals_deadline before update of expires_at on approvals
when new.expires_at < old.expires_at
begin
    select raise(abort, 'illegal transition: a deadline never comes earlier');
end;

-- Moving a deadline changes no status.
drop trigger approvals_move;

create trigger approvals_move before update of status on approvals
when new.status <> old.status and not exists (select 1 from transitions where old = old.status and new = new.status)
begin
    select raise(abort, 'illegal transition');
end;
