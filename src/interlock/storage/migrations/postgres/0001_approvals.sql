-- since: 1
-- Times are milliseconds since 1970, UTC. Every row belongs to a workspace. Text sorts by its bytes, as in SQLite.

create function interlock_now() returns bigint language sql volatile parallel unsafe as
    $$ select (extract(epoch from clock_timestamp()) * 1000)::bigint $$;

-- What a process remembered of the database is not so any more: its transaction fails, and it looks for itself.
create function interlock_stale() returns bigint language plpgsql volatile as $$
begin
    raise exception 'stale' using errcode = 'serialization_failure';
end $$;

create table workspaces (
    name       text collate "C" primary key,
    key        bytea not null,             -- makes the fingerprints of secret values
    created_at bigint not null
);

create table heads (                       -- the newest entry of each ledger; locked first, once a batch
    workspace text collate "C" primary key,
    seq       bigint not null,
    link      text not null,
    at        bigint not null
) with (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

create table terms (                       -- what people were asked to decide under, kept once
    sha256 text collate "C" primary key,
    body   bytea not null
);

create table specs (                       -- tool definitions, kept once
    sha256 text collate "C" primary key,
    body   bytea not null
);

create table approvals (
    workspace    text collate "C" not null,
    id           text collate "C" not null,
    run_id       text collate "C" not null,
    call_id      text collate "C" not null,
    tool         text collate "C" not null,
    effect       text not null,
    agent        text collate "C" not null,
    agent_path   text not null,
    thread_id    text collate "C" not null,
    requester    text collate "C" not null,
    priority     text not null,
    idempotent   integer not null,
    spec_sha256  text not null,
    nonce        text not null,
    proposed     text not null,            -- sha256(nonce + the arguments as they were first proposed)
    created_at   bigint not null,
    expires_at   bigint not null,
    terms_sha256 text not null,
    args_sha256  text not null,
    binding      text not null,
    status       text collate "C" not null,
    version      bigint not null,
    progress     text,                     -- alarms, votes, editors, delegations, reminders; null while there are none
    decision     text,
    release_at   bigint,
    start_by     bigint,
    fence        bigint not null,
    lease_until  bigint,
    runner       text not null,
    grant_id     text not null,
    due_at       bigint,                   -- when time has to look at it next
    primary key (id, workspace)            -- the keys that begin with the workspace are for lists; see `sets.py`
) with (fillfactor = 70);

create unique index approvals_by_call on approvals (run_id, call_id, workspace);
create index approvals_newest on approvals (workspace, created_at, id);
create index approvals_pending on approvals (workspace, expires_at, id) where status = 'pending';
create index approvals_due on approvals (due_at) where due_at is not null;

create table payloads (                    -- the large and the private part of an approval; can be erased
    workspace  text collate "C" not null,
    id         text collate "C" not null,
    args       bytea,
    shown      bytea,                      -- null when nothing in args is secret
    sentence   text,
    agent_says text,
    preview    text,
    result     bytea,
    error      text,
    primary key (workspace, id)
);

create table tallies (                     -- how many approvals have each status
    workspace text collate "C" not null,
    status    text collate "C" not null,
    n         bigint not null,
    primary key (workspace, status)
) with (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

create table events (                      -- the ledger: numbered in commit order, chained by link
    workspace   text collate "C" not null,
    seq         bigint not null,
    at          bigint not null,
    kind        text collate "C" not null,
    actor       text collate "C" not null,
    approval_id text collate "C" not null,
    data        text not null,
    digest      text not null,             -- sha256(salt + content), or '' without content
    link        text not null,
    primary key (workspace, seq)
);

create index events_by_approval on events (workspace, approval_id, seq) where approval_id <> '';

create table contents (                    -- what people wrote or saw; salt and content are erased together
    workspace text collate "C" not null,
    seq       bigint not null,
    salt      bytea not null,
    content   bytea not null,
    primary key (workspace, seq)
);

create table reads (                       -- allowed reads leave a number a minute
    workspace text collate "C" not null,
    tool      text collate "C" not null,
    minute    bigint not null,
    n         bigint not null,
    primary key (workspace, tool, minute)
);

create table runs (
    workspace   text collate "C" not null,
    id          text collate "C" not null,
    agent       text collate "C" not null,
    status      text not null,
    runner      text not null,
    lease_until bigint not null,
    created_at  bigint not null,
    primary key (workspace, id)
);

create index runs_open on runs (workspace, agent, created_at) where status = 'open';

create table grants (
    workspace   text collate "C" not null,
    id          text collate "C" not null,
    tool        text not null,
    spec_sha256 text not null,
    created_by  text not null,
    teams       text not null,
    role        text not null,
    created_at  bigint not null,
    expires_at  bigint not null,
    agent       text not null,
    condition   text not null,
    max_uses    bigint,
    uses        bigint not null,
    revoked_at  bigint,
    reason      text not null,
    primary key (workspace, id)
);

create table policies (
    workspace text collate "C" not null,
    version   bigint not null,
    sha256    text not null,
    body      text not null,
    author    text not null,
    at        bigint not null,
    primary key (workspace, version)
);

create table users (
    workspace text collate "C" not null,
    name      text collate "C" not null,
    role      text not null,
    teams     text not null,
    primary key (workspace, name)
);

-- The database refuses illegal transitions by itself, whoever asks, and a compare-and-set that met another version
-- than it read. One condition for all of it: it is looked at with every update, the function only if it holds.

create function interlock_refuse() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        raise exception 'illegal transition: an approval begins as pending or approved';
    elsif new.version <> old.version + 1 then
        raise exception 'lost race' using errcode = 'serialization_failure';
    elsif new.status <> old.status then
        raise exception 'illegal transition: % became %', old.status, new.status;
    elsif new.fence <> old.fence then
        raise exception 'illegal transition: this call was started already';
    end if;
    raise exception 'illegal transition: what an approval is about never changes';
end $$;

create trigger approvals_begin before insert on approvals for each row
    when (new.status not in ('pending', 'approved') or new.version <> 1 or new.fence <> 0)
    execute function interlock_refuse();

create trigger approvals_move before update on approvals for each row
    when (
        -- only time's note of what is due may change without a new version
        (new.version <> old.version + 1
            and (new.version, new.status, new.fence, new.binding, new.args_sha256, new.nonce, new.terms_sha256,
                 new.decision, new.progress, new.release_at, new.start_by, new.lease_until, new.runner)
                is distinct from
                (old.version, old.status, old.fence, old.binding, old.args_sha256, old.nonce, old.terms_sha256,
                 old.decision, old.progress, old.release_at, old.start_by, old.lease_until, old.runner))
        or (new.status <> old.status and old.status || ' ' || new.status not in (
            'pending approved', 'pending rejected', 'pending responded', 'pending expired', 'pending cancelled',
            'rejected pending',
            'approved running', 'approved cancelled', 'approved expired',
            'running succeeded', 'running failed', 'running unknown',
            'unknown succeeded', 'unknown failed'))
        or (new.fence <> old.fence
            and (new.fence <> old.fence + 1 or (old.status = 'running' and old.idempotent = 0)))
        or (new.workspace, new.id, new.run_id, new.call_id, new.tool, new.effect, new.agent, new.agent_path,
            new.thread_id, new.requester, new.idempotent, new.spec_sha256, new.proposed, new.created_at, new.expires_at)
           is distinct from
           (old.workspace, old.id, old.run_id, old.call_id, old.tool, old.effect, old.agent, old.agent_path,
            old.thread_id, old.requester, old.idempotent, old.spec_sha256, old.proposed, old.created_at, old.expires_at)
        -- erasing takes the nonce of what has ended
        or (new.nonce <> old.nonce
            and (new.nonce <> '' or old.status in ('pending', 'approved', 'running', 'unknown')))
    )
    execute function interlock_refuse();
