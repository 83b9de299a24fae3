-- Times are milliseconds since 1970, UTC. Every row belongs to a workspace.

create table workspaces (
    name       text primary key,
    key        blob not null,              -- makes the fingerprints of secret values
    created_at integer not null
) without rowid;

create table heads (                       -- the newest entry of each ledger; locked first, once a batch
    workspace text primary key,
    seq       integer not null,
    link      text not null,
    at        integer not null
) without rowid;

create table terms (                       -- what people were asked to decide under, kept once
    sha256 text primary key,
    body   blob not null
) without rowid;

create table specs (                       -- tool definitions, kept once
    sha256 text primary key,
    body   blob not null
) without rowid;

create table approvals (
    workspace    text not null,
    id           text not null,
    run_id       text not null,
    call_id      text not null,
    tool         text not null,
    effect       text not null,
    agent        text not null,
    agent_path   text not null,
    thread_id    text not null,
    requester    text not null,
    priority     text not null,
    idempotent   integer not null,
    spec_sha256  text not null,
    nonce        text not null,
    proposed     text not null,            -- sha256(nonce + the arguments as they were first proposed)
    created_at   integer not null,
    expires_at   integer not null,
    terms_sha256 text not null,
    args_sha256  text not null,
    binding      text not null,
    status       text not null,
    version      integer not null,
    progress     text,                     -- alarms, votes, editors, delegations, reminders; null while there are none
    decision     text,
    release_at   integer,
    start_by     integer,
    fence        integer not null,
    lease_until  integer,
    runner       text not null,
    grant_id     text not null,
    due_at       integer,                  -- when time has to look at it next
    primary key (workspace, id)
) without rowid;

create unique index approvals_by_call on approvals (workspace, run_id, call_id);
create index approvals_newest on approvals (workspace, created_at, id);
create index approvals_pending on approvals (workspace, expires_at, id) where status = 'pending';
create index approvals_running on approvals (workspace, id) where status = 'running';
create index approvals_due on approvals (due_at) where due_at is not null;

create table payloads (                    -- the large and the private part of an approval; can be erased
    workspace  text not null,
    id         text not null,
    args       blob,
    shown      blob,                       -- null when nothing in args is secret
    sentence   text,
    agent_says text,
    preview    text,
    result     blob,
    error      text,
    primary key (workspace, id)
) without rowid;

create table tallies (                     -- how many approvals have each status
    workspace text not null,
    status    text not null,
    n         integer not null,
    primary key (workspace, status)
) without rowid;

create table events (                      -- the ledger: numbered in commit order, chained by link
    workspace   text not null,
    seq         integer not null,
    at          integer not null,
    kind        text not null,
    actor       text not null,
    approval_id text not null,
    data        text not null,
    digest      text not null,             -- sha256(salt + content), or '' without content
    link        text not null,
    primary key (workspace, seq)
) without rowid;

create index events_by_approval on events (workspace, approval_id, seq) where approval_id <> '';

create table contents (                    -- what people wrote or saw; salt and content are erased together
    workspace text not null,
    seq       integer not null,
    salt      blob not null,
    content   blob not null,
    primary key (workspace, seq)
) without rowid;

create table reads (                       -- allowed reads leave a number a minute
    workspace text not null,
    tool      text not null,
    minute    integer not null,
    n         integer not null,
    primary key (workspace, tool, minute)
) without rowid;

create table runs (
    workspace   text not null,
    id          text not null,
    agent       text not null,
    status      text not null,
    runner      text not null,
    lease_until integer not null,
    created_at  integer not null,
    primary key (workspace, id)
) without rowid;

create index runs_open on runs (workspace, agent, created_at) where status = 'open';

create table grants (
    workspace   text not null,
    id          text not null,
    tool        text not null,
    spec_sha256 text not null,
    created_by  text not null,
    teams       text not null,
    role        text not null,
    created_at  integer not null,
    expires_at  integer not null,
    agent       text not null,
    condition   text not null,
    max_uses    integer,
    uses        integer not null,
    revoked_at  integer,
    reason      text not null,
    primary key (workspace, id)
) without rowid;

create table policies (
    workspace text not null,
    version   integer not null,
    sha256    text not null,
    body      text not null,
    author    text not null,
    at        integer not null,
    primary key (workspace, version)
) without rowid;

create table users (
    workspace text not null,
    name      text not null,
    role      text not null,
    teams     text not null,
    primary key (workspace, name)
) without rowid;

-- The database refuses illegal transitions by itself, whoever asks.

create table transitions (
    old text not null,
    new text not null,
    primary key (old, new)
) without rowid;

insert into transitions (old, new) values
    ('pending', 'pending'), ('pending', 'approved'), ('pending', 'rejected'), ('pending', 'responded'),
    ('pending', 'expired'), ('pending', 'cancelled'),
    ('rejected', 'pending'),
    ('approved', 'running'), ('approved', 'cancelled'), ('approved', 'expired'),
    ('running', 'running'), ('running', 'succeeded'), ('running', 'failed'), ('running', 'unknown'),
    ('unknown', 'succeeded'), ('unknown', 'failed');

create trigger approvals_begin before insert on approvals
when new.status not in ('pending', 'approved') or new.version <> 1 or new.fence <> 0
begin
    select raise(abort, 'illegal transition: an approval begins as pending or approved');
end;

create trigger approvals_move before update of status on approvals
when not exists (select 1 from transitions where old = old.status and new = new.status)
begin
    select raise(abort, 'illegal transition');
end;

create trigger approvals_restart before update of fence on approvals
when new.fence <> old.fence and (new.fence <> old.fence + 1 or (old.status = 'running' and old.idempotent = 0))
begin
    select raise(abort, 'illegal transition: this call was started already');
end;

create trigger approvals_keep before update of
    workspace, id, run_id, call_id, tool, effect, agent, agent_path, thread_id, requester, idempotent, spec_sha256,
    nonce, proposed, created_at, expires_at on approvals
begin
    select raise(abort, 'illegal transition: what an approval is about never changes');
end;
