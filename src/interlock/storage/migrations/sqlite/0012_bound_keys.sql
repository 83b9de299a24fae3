-- since: 2
-- Keys that are for somebody: bound to agents, tools and a requester, with an end, and replaced by rotation.

alter table keys add column agents       text not null default '';  -- JSON list of names; empty: not bound
alter table keys add column tools        text not null default '';  -- JSON list of patterns; empty: not bound
alter table keys add column requester    text not null default '';  -- any, none, or empty; one person is in person
alter table keys add column expires_at   integer;                   -- from then on it lets nobody in
alter table keys add column rotated_from text not null default '';  -- the key that this one replaces
alter table keys add column root         text not null default '';  -- the first key of that chain; empty: this one

create index grants_by_person on grants (workspace, created_by) where revoked_at is null;
