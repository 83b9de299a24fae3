-- since: 1
-- The long memory: search, erasure, budgets of grants, reasons of policies.

alter table policies add column reason text not null default '';

alter table grants add column budget_of text not null default '';  -- where in the arguments the amount is
alter table grants add column budget    text not null default '';  -- a decimal number; empty: none
alter table grants add column spent     text not null default '0';

-- What is neither waiting nor well, by status: few rows, so that an ordinary call touches this index little.
create index approvals_odd on approvals (status, workspace, created_at, id) where status not in ('pending', 'succeeded');
drop index approvals_running;

create index grants_usable on grants (workspace, tool, expires_at) where revoked_at is null;

create index events_denied on events (workspace, seq) where kind = 'denied';

create table marks (                       -- how far work that follows the ledger has come: search, retention
    workspace text not null,
    name      text not null,
    seq       integer not null,
    primary key (workspace, name)
) without rowid;

create table docs (                        -- what can be searched for; numbered in the order of creation
    doc       integer primary key,
    workspace text not null,
    id        text not null,
    words     text not null                -- separated by spaces
);

create unique index docs_by_id on docs (workspace, id);

-- Only which words a document has, not where: a third of the size.
create virtual table found using fts5(
    words, content = 'docs', content_rowid = 'doc', tokenize = 'ascii', detail = 'none', columnsize = 0
);

-- Left to itself, the index merges its parts in one go now and then, and a decision would wait for a second.
-- So it merges a little each time that a mark moves.
insert into found (found, rank) values ('automerge', 0);
insert into found (found, rank) values ('crisismerge', 1000);

create trigger marks_moved after update of seq on marks when new.name = 'search' begin
    insert into found (found, rank) values ('merge', 64);
end;

-- Words that were taken out of a document stay in the index until its parts are merged. This merges them all.
create trigger marks_purged after update of seq on marks when new.name = 'purge' begin
    insert into found (found, rank) values ('merge', -256);
end;

create trigger docs_added after insert on docs begin
    insert into found (rowid, words) values (new.doc, new.words);
end;

create trigger docs_removed after delete on docs begin
    insert into found (found, rowid, words) values ('delete', old.doc, old.words);
end;

create trigger docs_changed after update of words on docs begin
    insert into found (found, rowid, words) values ('delete', old.doc, old.words);
    insert into found (rowid, words) values (new.doc, new.words);
end;

-- Erasing takes the nonce of an approval, and nothing else that it is about.
drop trigger approvals_keep;

create trigger approvals_keep before update of
    workspace, id, run_id, call_id, tool, effect, agent, agent_path, thread_id, requester, idempotent, spec_sha256,
    proposed, created_at, expires_at on approvals
begin
    select raise(abort, 'illegal transition: what an approval is about never changes');
end;

create trigger approvals_nonce before update of nonce on approvals
when new.nonce <> old.nonce and (new.nonce <> '' or old.status in ('pending', 'approved', 'running', 'unknown'))
begin
    select raise(abort, 'illegal transition: what an approval is about never changes');
end;
