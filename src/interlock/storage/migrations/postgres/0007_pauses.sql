-- since: 2
-- Runs of a framework that stand still: what is needed to go on with them, and who goes on with which.

create table pauses (
    workspace   text collate "C" not null,
    run_id      text collate "C" not null, -- as its approvals have it
    called      text collate "C" not null, -- what its framework calls it, if that is longer; else empty
    agent       text collate "C" not null,
    owner       text collate "C" not null, -- whose key it was paused with; empty for a program with the database
    runner      text collate "C" not null, -- who goes on with it, or empty
    lease_until bigint not null,           -- nobody else takes it before
    attempts    bigint not null,           -- how often somebody began to go on with it
    fence       bigint not null,
    paused_at   bigint not null,
    state       bytea not null,            -- opaque, and personal; kept beside the row when it is large
    primary key (workspace, run_id)
);

create index pauses_newest on pauses (workspace, paused_at, run_id);
create index pauses_of on pauses (workspace, agent, paused_at, run_id);
create index pauses_held on pauses (workspace, agent) where runner <> '';
