-- since: 2
-- Whose a call is, and what its key proved, never change; the keys of a chain of rotations and the tools that a key
-- declared are found by an index.

drop trigger approvals_keep;

create trigger approvals_keep before update of
    workspace, id, run_id, call_id, tool, effect, agent, agent_path, thread_id, requester, idempotent, spec_sha256,
    proposed, created_at, owner, known on approvals
begin
    select raise(abort, 'illegal transition: what an approval is about never changes');
end;

create index keys_by_chain on keys (workspace, (coalesce(nullif(root, ''), id)));

alter table tools add column key_id text not null default '';  -- which agent's key declared it first; empty: none

create index tools_by_key on tools (workspace, key_id);
