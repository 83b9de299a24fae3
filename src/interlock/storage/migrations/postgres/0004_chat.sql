-- since: 2
-- The agent that chats: threads and their lines, drafts of what a model is saying, and what tool packs keep.

create table threads (                     -- a conversation; what it needs next follows from its lines
    workspace    text collate "C" not null,
    id           text collate "C" not null,
    agent        text collate "C" not null,
    person       text collate "C" not null,              -- whose conversation it is
    title        text not null,
    parent       text collate "C" not null,              -- the thread whose agent called this one's, or empty
    parent_call  text not null,
    path         text not null,            -- agents from the outermost to this one
    status       text not null,            -- idle, ready, running, waiting
    lines        bigint not null,              -- how many there are
    due_at       bigint,                       -- when somebody has to look at it next
    woken        bigint not null,              -- counts what happened around it, so that nothing is missed while it runs
    runner       text not null,
    fence        bigint not null,
    confirmation text not null,            -- what its person was asked in words, and what they said
    created_at   bigint not null,
    updated_at   bigint not null,
    primary key (workspace, id)
);

create index threads_due on threads (due_at) where due_at is not null;
create index threads_of on threads (workspace, person, updated_at, id) where parent = '';
create index threads_by_parent on threads (workspace, parent) where parent <> '';
create index threads_running on threads (runner) where status = 'running';

create table lines (                       -- the log of a thread
    workspace text collate "C" not null,
    thread_id text collate "C" not null,
    n         bigint not null,
    at        bigint not null,
    kind      text not null,
    actor     text not null,
    body      bytea not null,
    primary key (workspace, thread_id, n)
);

create table drafts (                      -- what a model is saying right now; gone once its turn is recorded
    workspace text collate "C" not null,
    thread_id text collate "C" not null,
    line      bigint not null,                 -- the line behind which it is being said
    words     text not null,
    primary key (workspace, thread_id)
);

create table records (                     -- what tool packs keep: pages, posts, objectives
    workspace text collate "C" not null,
    kind      text collate "C" not null,
    id        text collate "C" not null,
    body      bytea not null,
    at        bigint not null,
    primary key (workspace, kind, id)
);

create table applied (                     -- changes of records that were made already, by their key
    workspace text collate "C" not null,
    key       text collate "C" not null,
    result    bytea not null,
    at        bigint not null,
    primary key (workspace, key)
);

create index applied_ending on applied (at);
