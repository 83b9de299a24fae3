-- since: 2
-- Tools that only agents declared, as an admin vouches for them: what a call claims of one does not count any more.

create table pins (
    workspace  text not null,
    tool       text not null,
    definition blob not null,              -- effect, schema, secret fields and idempotent: a tool definition as in specs
    agent      text not null,              -- whose declaration it was taken from; empty if nobody's
    pinned_by  text not null,
    at         integer not null,
    primary key (workspace, tool)
);
