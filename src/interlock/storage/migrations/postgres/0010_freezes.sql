-- since: 2
-- Freezes: nothing in their scope starts, and the deadlines of what they cover move by their time.

create table freezes (
    workspace   text collate "C" not null,
    id          text collate "C" not null,
    scope       text not null,             -- workspace, agent, key or tool
    name        text not null,             -- as it was given; empty for the workspace
    folded      text collate "C" not null, -- as it is compared
    reason      text not null,
    created_by  text not null,
    at          bigint not null,
    released_at bigint,
    released_by text not null,
    settled_at  bigint,                    -- every deadline that it held up has been moved
    primary key (workspace, id)
);

create index freezes_open on freezes (workspace, at) where settled_at is null;

create table key_agents (                  -- which agents' names a key has used: a freeze of the agent covers it
    workspace text collate "C" not null,
    agent     text collate "C" not null,   -- as names are compared
    key_id    text collate "C" not null,
    primary key (workspace, agent, key_id)
);

-- A deadline moves by the time for which it was held up; it never comes earlier.
drop trigger approvals_move on approvals;

create trigger approvals_move before update on approvals for each row
    when (
        -- only time's note of what is due may change without a new version
        (new.version <> old.version + 1
            and (new.version, new.status, new.fence, new.binding, new.args_sha256, new.nonce, new.terms_sha256,
                 new.decision, new.progress, new.release_at, new.start_by, new.lease_until, new.runner, new.expires_at)
                is distinct from
                (old.version, old.status, old.fence, old.binding, old.args_sha256, old.nonce, old.terms_sha256,
                 old.decision, old.progress, old.release_at, old.start_by, old.lease_until, old.runner, old.expires_at))
        or (new.status <> old.status and old.status || ' ' || new.status not in (
            'pending approved', 'pending rejected', 'pending responded', 'pending expired', 'pending cancelled',
            'rejected pending',
            'approved running', 'approved cancelled', 'approved expired',
            'running succeeded', 'running failed', 'running unknown',
            'unknown succeeded', 'unknown failed'))
        or (new.fence <> old.fence
            and (new.fence <> old.fence + 1 or (old.status = 'running' and old.idempotent = 0)))
        or (new.workspace, new.id, new.run_id, new.call_id, new.tool, new.effect, new.agent, new.agent_path,
            new.thread_id, new.requester, new.idempotent, new.spec_sha256, new.proposed, new.created_at)
           is distinct from
           (old.workspace, old.id, old.run_id, old.call_id, old.tool, old.effect, old.agent, old.agent_path,
            old.thread_id, old.requester, old.idempotent, old.spec_sha256, old.proposed, old.created_at)
        or new.expires_at < old.expires_at
        -- erasing takes the nonce of what has ended
        or (new.nonce <> old.nonce
            and (new.nonce <> '' or old.status in ('pending', 'approved', 'running', 'unknown')))
    )
    execute function interlock_refuse();
