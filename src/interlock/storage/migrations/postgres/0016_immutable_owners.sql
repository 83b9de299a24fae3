-- since: 2
-- Whose a call is, and what its key proved, never change; the keys of a chain of rotations and the tools that a key
-- declared are found by an index.

drop trigger approvals_move on approvals;

create trigger approvals_move before update on approvals for each row
    when (
        -- only time's note of what is due may change without a new version
        (new.version <> old.version + 1
            and (new.version, new.status, new.fence, new.binding, new.args_sha256, new.nonce, new.terms_sha256,
                 new.decision, new.progress, new.release_at, new.start_by, new.lease_until, new.runner, new.expires_at)
                is distinct from
                (old.version, old.status, old.fence, old.binding, old.args_sha256, old.nonce, old.terms_sha256,
                 old.decision, old.progress, old.release_at, old.start_by, old.lease_until, old.runner, old.expires_at))
        or (new.status <> old.status and old.status || ' ' || new.status not in (
            'pending approved', 'pending rejected', 'pending responded', 'pending expired', 'pending cancelled',
            'rejected pending',
            'approved running', 'approved cancelled', 'approved expired',
            'running succeeded', 'running failed', 'running unknown',
            'unknown succeeded', 'unknown failed'))
        or (new.fence <> old.fence
            and (new.fence <> old.fence + 1 or (old.status = 'running' and old.idempotent = 0)))
        or (new.workspace, new.id, new.run_id, new.call_id, new.tool, new.effect, new.agent, new.agent_path,
            new.thread_id, new.requester, new.idempotent, new.spec_sha256, new.proposed, new.created_at, new.owner,
            new.known)
           is distinct from
           (old.workspace, old.id, old.run_id, old.call_id, old.tool, old.effect, old.agent, old.agent_path,
            old.thread_id, old.requester, old.idempotent, old.spec_sha256, old.proposed, old.created_at, old.owner,
            old.known)
        or new.expires_at < old.expires_at
        -- erasing takes the nonce of what has ended
        or (new.nonce <> old.nonce
            and (new.nonce <> '' or old.status in ('pending', 'approved', 'running', 'unknown')))
    )
    execute function interlock_refuse();

create index keys_by_chain on keys (workspace, (coalesce(nullif(root, ''), id)));

alter table tools add column key_id text collate "C" not null default '';  -- which agent's key declared it first; empty: none

create index tools_by_key on tools (workspace, key_id);
