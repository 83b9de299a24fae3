-- since: 2
-- Tools that only agents declared, as an admin vouches for them: what a call claims of one does not count any more.

create table pins (
    workspace  text collate "C" not null,
    tool       text collate "C" not null,
    definition bytea not null,             -- effect, schema, secret fields and idempotent: a tool definition as in specs
    agent      text collate "C" not null,  -- whose declaration it was taken from; empty if nobody's
    pinned_by  text collate "C" not null,
    at         bigint not null,
    primary key (workspace, tool)
);
