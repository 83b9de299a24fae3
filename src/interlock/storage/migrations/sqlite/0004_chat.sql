-- since: 2
-- The agent that chats: threads and their lines, drafts of what a model is saying, and what tool packs keep.

create table threads (                     -- a conversation; what it needs next follows from its lines
    workspace    text not null,
    id           text not null,
    agent        text not null,
    person       text not null,              -- whose conversation it is
    title        text not null,
    parent       text not null,              -- the thread whose agent called this one's, or empty
    parent_call  text not null,
    path         text not null,            -- agents from the outermost to this one
    status       text not null,            -- idle, ready, running, waiting
    lines        integer not null,              -- how many there are
    due_at       integer,                       -- when somebody has to look at it next
    woken        integer not null,              -- counts what happened around it, so that nothing is missed while it runs
    runner       text not null,
    fence        integer not null,
    confirmation text not null,            -- what its person was asked in words, and what they said
    created_at   integer not null,
    updated_at   integer not null,
    primary key (workspace, id)
) without rowid;

create index threads_due on threads (due_at) where due_at is not null;
create index threads_of on threads (workspace, person, updated_at, id) where parent = '';
create index threads_by_parent on threads (workspace, parent) where parent <> '';
create index threads_running on threads (runner) where status = 'running';

create table lines (                       -- the log of a thread
    workspace text not null,
    thread_id text not null,
    n         integer not null,
    at        integer not null,
    kind      text not null,
    actor     text not null,
    body      blob not null,
    primary key (workspace, thread_id, n)
) without rowid;

create table drafts (                      -- what a model is saying right now; gone once its turn is recorded
    workspace text not null,
    thread_id text not null,
    line      integer not null,                 -- the line behind which it is being said
    words     text not null,
    primary key (workspace, thread_id)
) without rowid;

create table records (                     -- what tool packs keep: pages, posts, objectives
    workspace text not null,
    kind      text not null,
    id        text not null,
    body      blob not null,
    at        integer not null,
    primary key (workspace, kind, id)
) without rowid;

create table applied (                     -- changes of records that were made already, by their key
    workspace text not null,
    key       text not null,
    result    blob not null,
    at        integer not null,
    primary key (workspace, key)
) without rowid;

create index applied_ending on applied (at);
