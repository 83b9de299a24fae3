-- since: 2
-- Reaching people: what is to be told where and what became of it, who is who elsewhere, and channels that are off.

create table deliveries (                  -- one message through one channel; what it says is made when it is sent
    workspace   text not null,
    id          text not null,
    approval_id text not null,             -- empty for a test, and for one message in the place of many
    channel     text not null,
    place       text not null,
    person      text not null,
    reason      text not null,             -- asked, escalated, expired, group, test
    priority    text not null,
    status      text not null,             -- due, sending, sent, parked, dropped, grouped
    wanted      text not null,             -- what it should show, and what it shows
    said        text not null,
    nudge       integer not null,          -- reminders that are wanted, and that were given
    nudged      integer not null,
    ref         text not null,             -- what the channel gave for it
    attempts    integer not null,
    fence       integer not null,
    runner      text not null,
    error       text not null,
    created_at  integer not null,
    since       integer not null,          -- when there was something new to say
    due_at      integer,                   -- when it is to be said; while it is being sent, when the lease ends
    sent_at     integer,                   -- when it last disturbed somebody
    spent_at    integer,                   -- when its link was used to decide
    primary key (workspace, id)
) without rowid;

create index deliveries_due on deliveries (channel, workspace, priority, due_at) where due_at is not null;
create index deliveries_of on deliveries (workspace, approval_id, created_at, id) where approval_id <> '';
create index deliveries_lately on deliveries (workspace, channel, sent_at) where sent_at is not null;
create index deliveries_by on deliveries (workspace, status, created_at, id);

create table identities (                  -- who somebody elsewhere is here; made by the person, or by a proven address
    workspace text not null,
    channel   text not null,
    outside   text not null,               -- what the channel calls them by
    person    text not null,
    at        integer not null,
    primary key (workspace, channel, outside)
) without rowid;

create table switches (                    -- channels that are off, because their other side said so
    channel text primary key,
    off_at  integer not null,
    why     text not null
) without rowid;
