-- since: 2
-- An illegal transition rolls back the transaction, not just its statement: to take back one statement, SQLite keeps a
-- copy of every page that the statement changes, and writes the copies of a large batch to a temporary file.

drop trigger approvals_begin;
drop trigger approvals_move;
drop trigger approvals_restart;
drop trigger approvals_keep;
drop trigger approvals_nonce;
drop trigger approvals_deadline;

create trigger approvals_begin before insert on approvals
when new.status not in ('pending', 'approved') or new.version <> 1 or new.fence <> 0
begin
    select raise(rollback, 'illegal transition: an approval begins as pending or approved');
end;

create trigger approvals_move before update of status on approvals
when new.status <> old.status and not exists (select 1 from transitions where old = old.status and new = new.status)
begin
    select raise(rollback, 'illegal transition');
end;

create trigger approvals_restart before update of fence on approvals
when new.fence <> old.fence and (new.fence <> old.fence + 1 or (old.status = 'running' and old.idempotent = 0))
begin
    select raise(rollback, 'illegal transition: this call was started already');
end;

create trigger approvals_keep before update of
    workspace, id, run_id, call_id, tool, effect, agent, agent_path, thread_id, requester, idempotent, spec_sha256,
    proposed, created_at, owner, known on approvals
begin
    select raise(rollback, 'illegal transition: what an approval is about never changes');
end;

create trigger approvals_nonce before update of nonce on approvals
when new.nonce <> old.nonce and (new.nonce <> '' or old.status in ('pending', 'approved', 'running', 'unknown'))
begin
    select raise(rollback, 'illegal transition: what an approval is about never changes');
end;

create trigger approvals_deadline before update of expires_at on approvals
when new.expires_at < old.expires_at
begin
    select raise(rollback, 'illegal transition: a deadline never comes earlier');
end;
