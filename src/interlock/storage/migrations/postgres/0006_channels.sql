-- since: 2
-- Reaching people: what is to be told where and what became of it, who is who elsewhere, and channels that are off.

create table deliveries (                  -- one message through one channel; what it says is made when it is sent
    workspace   text collate "C" not null,
    id          text collate "C" not null,
    approval_id text collate "C" not null, -- empty for a test, and for one message in the place of many
    channel     text collate "C" not null,
    place       text collate "C" not null,
    person      text collate "C" not null,
    reason      text collate "C" not null, -- asked, escalated, expired, group, test
    priority    text collate "C" not null,
    status      text collate "C" not null, -- due, sending, sent, parked, dropped, grouped
    wanted      text collate "C" not null, -- what it should show, and what it shows
    said        text collate "C" not null,
    nudge       bigint not null,           -- reminders that are wanted, and that were given
    nudged      bigint not null,
    ref         text collate "C" not null, -- what the channel gave for it
    attempts    bigint not null,
    fence       bigint not null,
    runner      text collate "C" not null,
    error       text collate "C" not null,
    created_at  bigint not null,
    since       bigint not null,           -- when there was something new to say
    due_at      bigint,                    -- when it is to be said; while it is being sent, when the lease ends
    sent_at     bigint,                    -- when it last disturbed somebody
    spent_at    bigint,                    -- when its link was used to decide
    primary key (workspace, id)
);

create index deliveries_due on deliveries (channel, workspace, priority, due_at) where due_at is not null;
create index deliveries_of on deliveries (workspace, approval_id, created_at, id) where approval_id <> '';
create index deliveries_lately on deliveries (workspace, channel, sent_at) where sent_at is not null;
create index deliveries_by on deliveries (workspace, status, created_at, id);

create table identities (                  -- who somebody elsewhere is here; made by the person, or by a proven address
    workspace text collate "C" not null,
    channel   text collate "C" not null,
    outside   text collate "C" not null,   -- what the channel calls them by
    person    text collate "C" not null,
    at        bigint not null,
    primary key (workspace, channel, outside)
);

create table switches (                    -- channels that are off, because their other side said so
    channel text collate "C" primary key,
    off_at  bigint not null,
    why     text collate "C" not null
);
