-- since: 2
-- The server: people who sign in, keys, sessions, agents, and answers that are given again.

alter table users add column email      text not null default '';  -- where they are reached, and how a provider knows them
alter table users add column password   text not null default '';  -- argon2; empty: none
alter table users add column subject    text not null default '';  -- who they are at the OpenID provider; empty: nobody
alter table users add column away_until bigint; -- until then others decide in their place
alter table users add column away_to    text not null default '';  -- who: users and teams
alter table users add column removed_at bigint;

create index users_by_subject on users (subject) where subject <> '';

create table keys (                        -- of programs, and of people for their programs
    id         text collate "C" primary key, -- stands in the key itself, and may be shown
    digest     text collate "C" not null, -- sha256 of the key
    workspace  text collate "C" not null,
    name       text collate "C" not null,
    role       text not null,
    person     text collate "C" not null, -- whose it is; empty for an agent
    created_by text not null,
    created_at bigint not null,
    used_at    bigint, -- to the minute
    revoked_at bigint
);

create index keys_by_workspace on keys (workspace, created_at);
create index keys_by_person on keys (workspace, person) where person <> '';

create table sessions (                    -- somebody who is signed in
    digest     text collate "C" primary key, -- sha256 of what the cookie holds
    workspace  text collate "C" not null,
    person     text collate "C" not null,
    via        text not null,              -- password, link or oidc
    created_at bigint not null,
    expires_at bigint not null
);

create index sessions_by_user on sessions (workspace, person);
create index sessions_ending on sessions (expires_at);

create table links (                       -- each is good for one sign-in
    digest     text collate "C" primary key,
    workspace  text collate "C" not null,
    person     text collate "C" not null, -- empty: whoever opens it says their name
    role       text not null,
    teams      text not null,
    created_by text not null,
    expires_at bigint not null
);

create index links_by_person on links (workspace, person) where person <> '';
create index links_ending on links (expires_at);

create table agents (                      -- what is known of an agent; each change is a new version
    workspace text collate "C" not null,
    name      text collate "C" not null,
    version   bigint not null,
    body      text not null,
    author    text not null,
    at        bigint not null,
    primary key (workspace, name)
);

create table tools (                       -- what agents brought, when it was first seen
    workspace   text collate "C" not null,
    name        text collate "C" not null,
    spec_sha256 text collate "C" not null,
    agent       text collate "C" not null,
    at          bigint not null,
    primary key (workspace, name, spec_sha256, agent)
);

create table answers (                     -- to requests with an Idempotency-Key; given again for a day
    workspace text collate "C" not null,
    asker     text collate "C" not null,
    key       text collate "C" not null,
    digest    text collate "C" not null, -- sha256 of the request
    status    bigint not null,            -- 0 while it is being worked out
    body      bytea not null,
    at        bigint not null,
    primary key (workspace, asker, key)
);

create index answers_ending on answers (at);
