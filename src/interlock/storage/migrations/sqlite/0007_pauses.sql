-- since: 2
-- Runs of a framework that stand still: what is needed to go on with them, and who goes on with which.

create table pauses (
    workspace   text not null,
    run_id      text not null,             -- as its approvals have it
    called      text not null,             -- what its framework calls it, if that is longer; else empty
    agent       text not null,
    owner       text not null,             -- whose key it was paused with; empty for a program with the database
    runner      text not null,             -- who goes on with it, or empty
    lease_until integer not null,          -- nobody else takes it before
    attempts    integer not null,          -- how often somebody began to go on with it
    fence       integer not null,
    paused_at   integer not null,
    state       blob not null,             -- opaque, and personal; last, so that a list need not read over it
    primary key (workspace, run_id)
);

create index pauses_newest on pauses (workspace, paused_at, run_id);
create index pauses_of on pauses (workspace, agent, paused_at, run_id);
create index pauses_held on pauses (workspace, agent) where runner <> '';
