-- All named SQL statements. Placeholders are `?`; each database translates them for its driver.
-- {approval}, {payload} and {delivery} are the columns listed in `queries.py`, {charted_kinds} and {statement_kinds} its
-- kinds of events; {rare_status} is the condition of a partial index.
--
-- Tables and columns keep the words of the migrations; Python says:
--
-- | table                   | Python                                   |
-- | ----------------------- | ---------------------------------------- |
-- | answers                 | idempotency keys; `asker`: the principal |
-- | applied                 | applied changes of tool items            |
-- | channel_switches        | disabled channels                        |
-- | contents                | contents of events                       |
-- | docs                    | search documents                         |
-- | drafts                  | drafts; `line`: the number of the entry  |
-- | identities              | linked accounts; `outside`: external id  |
-- | lines                   | entries of threads                       |
-- | marks                   | offsets of consumers of the ledger       |
-- | reads                   | counts of allowed reads                  |
-- | records                 | tool items                               |
-- | tallies                 | counts of approvals by status            |
--
-- | column of deliveries    | field of Delivery                        |
-- | ----------------------- | ---------------------------------------- |
-- | place, person           | target.destination, target.person        |
-- | wanted, said            | desired_state, sent_state                |
-- | nudge, nudged           | reminders.due, reminders.sent            |
-- | since                   | pending_since                            |
-- | spent_at                | used_at                                  |

-- name: workspace_key
select key from workspaces where name = ?

-- name: insert_workspace
insert into workspaces (name, key, created_at) values (?, ?, ?) on conflict do nothing

-- name: head
select workspace, seq, link, at from heads where workspace = ?

-- name: write_head
insert into heads (workspace, seq, link, at) values (?, ?, ?, ?)
on conflict (workspace) do update set seq = excluded.seq, link = excluded.link, at = excluded.at

-- name: insert_terms
insert into terms (sha256, body) values (?, ?) on conflict do nothing

-- name: terms
select body from terms where sha256 = ?

-- name: insert_spec
insert into specs (sha256, body) values (?, ?) on conflict do nothing

-- name: spec
select body from specs where sha256 = ?

-- name: insert_approval
insert into approvals (
    workspace, id, run_id, call_id, tool, effect, agent, agent_path, thread_id, requester, priority, idempotent,
    spec_sha256, nonce, proposed, created_at, expires_at, terms_sha256, args_sha256, binding, status, version, progress,
    decision, release_at, start_by, fence, lease_until, runner, grant_id, due_at, owner, known
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: update_approval
update approvals set
    terms_sha256 = ?, args_sha256 = ?, binding = ?, status = ?, version = ?, progress = ?, decision = ?,
    release_at = ?, start_by = ?, fence = ?, lease_until = ?, runner = ?, due_at = ?, expires_at = ?
where workspace = ? and id = ? and version = ?

-- name: advance_approval
update approvals set status = ?, version = ?, fence = ?, lease_until = ?, runner = ?, due_at = ?
where workspace = ? and id = ? and version = ?

-- name: approval
select {approval} from approvals a where a.workspace = ? and a.id = ?

-- name: answered
select {approval} from approvals a where a.workspace = ? and a.status = 'pending' and a.progress is not null

-- name: stored
select {approval}, {payload}
from approvals a left join payloads p on p.workspace = a.workspace and p.id = a.id
where a.workspace = ? and a.id = ?

-- name: approval_by_call
select a.id from approvals a where a.workspace = ? and a.run_id = ? and a.call_id = ?

-- name: ids_like
select id
from (
    select id, created_at from approvals where workspace = ? order by created_at desc, id desc limit 100000
) as recent
where id like ? or id like ? order by created_at desc, id desc limit ?

-- name: due
select workspace, id from approvals where due_at <= ? order by due_at limit ?

-- name: snooze_approval
update approvals set due_at = ? where workspace = ? and id = ?

-- name: next_due
select min(due_at) from approvals where due_at is not null

-- name: running
select workspace, id, runner from approvals where {rare_status} and status = 'running'

-- name: waiting_runs
select count(distinct run_id) from (
    select run_id from approvals where workspace = ? and status = 'pending' order by expires_at limit 10000
) as waiting

-- name: insert_payload
insert into payloads (workspace, id, args, shown, sentence, agent_says, preview, preview_version) values (?, ?, ?, ?, ?, ?, ?, ?)

-- name: edit_payload
update payloads set args = ?, shown = ?, sentence = ?, preview = null where workspace = ? and id = ?

-- name: end_payload
update payloads set result = ?, error = ? where workspace = ? and id = ?

-- name: payload
select args, shown, sentence, agent_says, preview, result, error, preview_version from payloads where workspace = ? and id = ?

-- name: write_status_count
insert into tallies (workspace, status, n) values (?, ?, ?)
on conflict (workspace, status) do update set n = tallies.n + excluded.n

-- name: status_counts
select status, n from tallies where workspace = ? and n <> 0 order by status

-- name: insert_event
insert into events (workspace, seq, at, kind, actor, approval_id, data, digest, link)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: insert_content
insert into contents (workspace, seq, salt, content) values (?, ?, ?, ?)

-- name: entries
select e.workspace, e.seq, e.at, e.kind, e.actor, e.approval_id, e.data, e.digest, e.link, c.salt, c.content
from events e left join contents c on c.workspace = e.workspace and c.seq = e.seq
where e.workspace = ? and e.seq > ? order by e.seq limit ?

-- name: entries_of
select e.workspace, e.seq, e.at, e.kind, e.actor, e.approval_id, e.data, e.digest, e.link, c.salt, c.content
from events e left join contents c on c.workspace = e.workspace and c.seq = e.seq
where e.workspace = ? and e.seq > cast(? as bigint) and e.seq <= cast(? as bigint)
    and (e.kind = ? or cast(? as text) = '') and (e.actor = ? or cast(? as text) = '')
order by e.seq limit cast(? as bigint)

-- name: newest_entries_of
select e.workspace, e.seq, e.at, e.kind, e.actor, e.approval_id, e.data, e.digest, e.link, c.salt, c.content
from events e left join contents c on c.workspace = e.workspace and c.seq = e.seq
where e.workspace = ? and e.seq > cast(? as bigint) and e.seq <= cast(? as bigint)
    and (e.kind = ? or cast(? as text) = '') and (e.actor = ? or cast(? as text) = '')
order by e.seq desc limit cast(? as bigint)

-- name: timeline
select e.workspace, e.seq, e.at, e.kind, e.actor, e.approval_id, e.data, e.digest, e.link, c.salt, c.content
from (
    select workspace, seq from events where workspace = ? and approval_id = ? and approval_id <> ''
    order by approval_id, seq limit 1000
) as k
join events e on e.workspace = k.workspace and e.seq = k.seq
left join contents c on c.workspace = k.workspace and c.seq = k.seq
order by e.seq

-- name: link
select link from events where workspace = ? and seq = ?

-- name: changed_since
select workspace, seq, approval_id, case when kind like 'thread%' then data else '' end from events
where workspace = ? and seq > ? order by seq limit 1000

-- name: write_read_counts
insert into reads (workspace, tool, minute, n) values (?, ?, ?, ?)
on conflict (workspace, tool, minute) do update set n = reads.n + excluded.n

-- name: allowed_reads
select coalesce(sum(n), 0) from reads where workspace = ?

-- name: write_run
insert into runs (workspace, id, agent, status, runner, lease_until, created_at) values (?, ?, ?, ?, ?, ?, ?)
on conflict (workspace, id) do update set
    status = excluded.status, runner = excluded.runner, lease_until = excluded.lease_until

-- name: run
select id, workspace, agent, status, runner, lease_until, created_at from runs where workspace = ? and id = ?

-- name: open_runs
select id, workspace, agent, status, runner, lease_until, created_at from runs
where workspace = ? and agent = ? and status = 'open' order by created_at desc limit 100

-- name: open_runs_of
select count(*) from (
    select 1 from runs where workspace = ? and status = 'open' and substr(runner, 1, cast(? as integer)) = ? limit ?
) as counted

-- name: write_grant
insert into grants (
    workspace, id, tool, spec_sha256, created_by, teams, role, created_at, expires_at, agent, condition, max_uses,
    uses, revoked_at, reason, budget_of, budget, spent
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (workspace, id) do update set
    uses = excluded.uses, revoked_at = excluded.revoked_at, spent = excluded.spent

-- name: grant
select
    workspace, id, tool, spec_sha256, created_by, teams, role, created_at, expires_at, agent, condition, max_uses,
    uses, revoked_at, reason, budget_of, budget, spent
from grants where workspace = ? and id = ?

-- name: grants
select
    workspace, id, tool, spec_sha256, created_by, teams, role, created_at, expires_at, agent, condition, max_uses,
    uses, revoked_at, reason, budget_of, budget, spent
from grants where workspace = ? order by created_at desc, id desc limit 1000

-- name: usable_grants
select
    workspace, id, tool, spec_sha256, created_by, teams, role, created_at, expires_at, agent, condition, max_uses,
    uses, revoked_at, reason, budget_of, budget, spent
from grants where workspace = ? and revoked_at is null and expires_at > cast(? as bigint)
    and (max_uses is null or uses < max_uses) and (budget = '' or spent <> budget)
order by created_at desc, id desc limit 1000

-- name: usable_grants_by
select
    workspace, id, tool, spec_sha256, created_by, teams, role, created_at, expires_at, agent, condition, max_uses,
    uses, revoked_at, reason, budget_of, budget, spent
from grants where workspace = ? and created_by = ? and revoked_at is null and expires_at > cast(? as bigint)
order by created_at, id

-- name: usable_grants_of_tool
select
    workspace, id, tool, spec_sha256, created_by, teams, role, created_at, expires_at, agent, condition, max_uses,
    uses, revoked_at, reason, budget_of, budget, spent
from grants where workspace = ? and tool = ? and revoked_at is null and expires_at > cast(? as bigint)
    and (max_uses is null or uses < max_uses) and (budget = '' or spent <> budget)
order by created_at desc, id desc limit 1000

-- name: grant_ids_like
select id from grants where workspace = ? and (id like ? or id like ?) order by created_at desc limit ?

-- name: grant_uses
select {approval}, {payload}
from (
    select workspace, id, grant_id from approvals where workspace = ? and created_at between ? and ?
    order by created_at desc, id desc limit 10000
) as recent
join approvals a on a.workspace = recent.workspace and a.id = recent.id
left join payloads p on p.workspace = a.workspace and p.id = a.id
where recent.grant_id = ? limit ?

-- name: newest_specs_of_tool
select spec_sha256, agent, created_at
from (
    select tool, spec_sha256, agent, created_at from approvals where workspace = ?
    order by created_at desc, id desc limit 100000
) as recent
where tool = ? limit ?

-- name: calls_of_tool
select status, count(case when tool = ? and (agent = ? or cast(? as text) = '') then 1 end), count(*)
from (
    select tool, agent, status from approvals where workspace = ? and created_at >= ?
    order by created_at desc, id desc limit 100000
) as recent
group by status order by status

-- name: reads_of_tool
select coalesce(sum(n), 0) from reads where workspace = ? and tool = ? and minute >= ?

-- name: freezes
select
    f.id, f.workspace, f.scope, f.name, f.reason, f.created_by, f.at, f.released_at, f.released_by, f.settled_at,
    coalesce(c.id, u.key_id, '')
from freezes f
left join key_agents u on u.workspace = f.workspace and u.agent in (f.folded, '*') and f.scope = 'agent'
left join keys k on k.workspace = f.workspace and k.id = case f.scope when 'key' then f.name else u.key_id end
left join keys c on c.workspace = k.workspace
    and coalesce(nullif(c.root, ''), c.id) = coalesce(nullif(k.root, ''), k.id)
where f.workspace = ? and f.settled_at is null order by f.at, f.id, u.key_id

-- name: all_freezes
select id, workspace, scope, name, reason, created_by, at, released_at, released_by, settled_at, ''
from freezes where workspace = ? order by at desc, id desc limit ?

-- name: freeze
select id, workspace, scope, name, reason, created_by, at, released_at, released_by, settled_at, ''
from freezes where workspace = ? and id = ?

-- name: unsettled_freezes
select workspace, id from freezes where settled_at is null and released_at is not null order by at limit 100

-- name: write_freeze
insert into freezes (
    workspace, id, scope, name, folded, reason, created_by, at, released_at, released_by, settled_at
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (workspace, id) do update set
    released_at = excluded.released_at, released_by = excluded.released_by, settled_at = excluded.settled_at

-- name: insert_key_agent
insert into key_agents (workspace, agent, key_id) values (?, ?, ?) on conflict do nothing

-- name: keys_of_agent
select coalesce(c.id, u.key_id) from key_agents u
left join keys k on k.workspace = u.workspace and k.id = u.key_id
left join keys c on c.workspace = k.workspace
    and coalesce(nullif(c.root, ''), c.id) = coalesce(nullif(k.root, ''), k.id)
where u.workspace = ? and u.agent in (?, '*') order by u.key_id

-- name: keys_of_chain
select c.id from keys k join keys c on c.workspace = k.workspace
    and coalesce(nullif(c.root, ''), c.id) = coalesce(nullif(k.root, ''), k.id)
where k.workspace = ? and k.id = ? order by c.id

-- name: key_agent
select 1 from key_agents where workspace = ? and agent in (?, '*') and key_id = ?

-- name: pending_of_owner
select count(*) from (
    select 1 from approvals where workspace = ? and owner = ? and status = 'pending' limit ?
) as counted

-- name: open_approvals
select id from approvals where workspace = ? and status = 'pending'
union all select id from approvals where {rare_status} and status in ('approved', 'running') and workspace = ?
union all select id from approvals where workspace = ? and release_at > ? and status = 'rejected'

-- name: policy
select version, sha256, body, author, at, reason, source from policies where workspace = ?
order by version desc limit 1

-- name: policy_revision
select
    coalesce((select max(version) from policies where workspace = ?), 0),
    coalesce((select sum(version) from agents where workspace = ?), 0)

-- name: policies
select version, sha256, body, author, at, reason, source from policies where workspace = ?
order by version desc limit ?

-- name: known_policy
select version from policies where workspace = ? and sha256 = ? limit 1

-- name: checked_approvals
select coalesce((select seq from heads where workspace = ?), 0), {approval}, {payload}
from approvals a left join payloads p on p.workspace = a.workspace and p.id = a.id
where a.workspace = ? and a.id > ? and a.id <= ? order by a.id limit ?

-- name: checked_entries
select e.workspace, e.seq, e.at, e.kind, e.actor, e.approval_id, e.data, e.digest, e.link, c.salt, c.content
from events e left join contents c on c.workspace = e.workspace and c.seq = e.seq
where e.workspace = ? and e.approval_id <> '' and (e.approval_id, e.seq) > (?, ?) and e.approval_id <= ?
    and e.seq <= cast(? as bigint)
order by e.approval_id, e.seq limit ?

-- name: checked_users
select
    coalesce((select seq from heads where workspace = ?), 0),
    u.name, u.role, u.teams, u.email, u.away_until, u.away_to, u.removed_at
from users u where u.workspace = ? and u.name > ? order by u.name limit ?

-- name: checked_keys
select
    coalesce((select seq from heads where workspace = ?), 0),
    k.id, k.workspace, k.name, k.role, k.person, k.created_by, k.created_at, k.used_at, k.revoked_at,
    k.agents, k.tools, k.requester, k.expires_at, k.rotated_from, k.root, k.per_minute, k.pending, k.digest
from keys k where k.workspace = ? and k.id > ? order by k.id limit ?

-- name: checked_policies
select
    coalesce((select seq from heads where workspace = ?), 0),
    p.version, p.sha256, p.body, p.author, p.at, p.reason, p.source
from policies p where p.workspace = ? and p.version > cast(? as bigint) order by p.version limit ?

-- name: checked_grants
select
    coalesce((select seq from heads where workspace = ?), 0),
    g.workspace, g.id, g.tool, g.spec_sha256, g.created_by, g.teams, g.role, g.created_at, g.expires_at, g.agent,
    g.condition, g.max_uses, g.uses, g.revoked_at, g.reason, g.budget_of, g.budget, g.spent
from grants g where g.workspace = ? and g.id > ? order by g.id limit ?

-- name: checked_agents
select coalesce((select seq from heads where workspace = ?), 0), a.name, a.version, a.body, a.author, a.at
from agents a where a.workspace = ? and a.name > ? order by a.name limit ?

-- name: checked_freezes
select
    coalesce((select seq from heads where workspace = ?), 0),
    f.id, f.workspace, f.scope, f.name, f.reason, f.created_by, f.at, f.released_at, f.released_by, f.settled_at, '',
    f.folded
from freezes f where f.workspace = ? and f.id > ? order by f.id limit ?

-- name: checked_pins
select coalesce((select seq from heads where workspace = ?), 0), p.tool, p.definition, p.agent, p.pinned_by, p.at
from pins p where p.workspace = ? and p.tool > ? order by p.tool limit ?

-- name: checked_tallies
select h.seq, t.status, t.n from heads h left join tallies t on t.workspace = h.workspace and t.n <> 0
where h.workspace = ? order by t.status limit 1000

-- name: statements
select e.workspace, e.seq, e.at, e.kind, e.actor, e.approval_id, e.data, e.digest, e.link, c.salt, c.content
from events e left join contents c on c.workspace = e.workspace and c.seq = e.seq
where e.workspace = ? and e.seq > cast(? as bigint) and e.seq <= cast(? as bigint) and e.kind in {statement_kinds}
order by e.seq limit ?

-- name: first_approval_event
select data from events where workspace = ? and kind in ('proposed', 'allowed') order by seq limit 1

-- name: baseline_entry
select seq from events where workspace = ? and kind = 'stated' order by seq limit 1

-- name: workspaces_without_baseline
select h.workspace from heads h
where h.seq > 0 and not exists (select 1 from marks m where m.workspace = h.workspace and m.name = 'stated')
order by h.workspace

-- name: baseline_approvals
select {approval}, {payload}
from approvals a left join payloads p on p.workspace = a.workspace and p.id = a.id
where a.workspace = ? and a.id > ? and a.status in ('pending', 'approved', 'running', 'unknown', 'rejected')
order by a.id limit ?

-- name: insert_policy
insert into policies (workspace, version, sha256, body, author, at, reason, source) values (?, ?, ?, ?, ?, ?, ?, ?)

-- name: agents
select name, version, body, author, at from agents where workspace = ? order by name

-- name: agent
select name, version, body, author, at from agents where workspace = ? and name = ?

-- name: open_thread_approvals
select id, run_id, agent, agent_path from approvals
where workspace = ? and status = 'pending' and run_id >= 'thread-' and run_id < 'thread.'
union all select id, run_id, agent, agent_path from approvals
where {rare_status} and status = 'approved' and workspace = ? and run_id >= 'thread-' and run_id < 'thread.'
limit 10000

-- name: write_agent
insert into agents (workspace, name, version, body, author, at) values (?, ?, ?, ?, ?, ?)
on conflict (workspace, name) do update set
    version = excluded.version, body = excluded.body, author = excluded.author, at = excluded.at

-- name: pins
select tool, definition, agent, pinned_by, at from pins where workspace = ? order by tool limit 10000

-- name: write_pin
insert into pins (workspace, tool, definition, agent, pinned_by, at) values (?, ?, ?, ?, ?, ?)
on conflict (workspace, tool) do update set
    definition = excluded.definition, agent = excluded.agent, pinned_by = excluded.pinned_by, at = excluded.at

-- name: drop_pin
delete from pins where workspace = ? and tool = ?

-- name: calls_of_tools
select tool, agent, count(*), max(created_at)
from (
    select tool, agent, created_at from approvals where workspace = ? and created_at >= ?
    order by created_at desc, id desc limit 100000
) as recent
group by tool, agent order by tool, agent limit 10000

-- name: reads_since
select tool, sum(n), max(minute) from reads where workspace = ? and minute >= cast(? as bigint)
group by tool order by tool limit 10000

-- name: insert_tool
insert into tools (workspace, name, spec_sha256, agent, at, key_id) values (?, ?, ?, ?, ?, ?) on conflict do nothing

-- name: tools
select name, spec_sha256, agent, at from (
    select
        name, spec_sha256, agent, at,
        row_number() over (partition by key_id order by at desc, name, spec_sha256, agent) as place
    from tools where workspace = ?
) as placed
order by place, name, spec_sha256, agent limit ?

-- name: declared_by
select count(*) from (select 1 from tools where workspace = ? and key_id = ? limit ?) as counted

-- name: full_keys
select key_id from tools where workspace = ? and key_id <> '' group by key_id having count(*) >= ?
order by key_id limit 100

-- name: read_tools
select tool, min(minute) from reads where workspace = ? and tool <> ? group by tool order by tool limit 1000

-- name: users
select name, role, teams, email, away_until, away_to, removed_at from users where workspace = ? order by name

-- name: write_user
insert into users (workspace, name, role, teams, email, away_until, away_to, removed_at)
values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (workspace, name) do update set
    role = excluded.role, teams = excluded.teams, email = excluded.email, away_until = excluded.away_until,
    away_to = excluded.away_to, removed_at = excluded.removed_at

-- name: user
select name, role, teams, email, away_until, away_to, removed_at from users where workspace = ? and name = ?

-- name: password
select password from users where workspace = ? and name = ? and removed_at is null

-- name: write_password
update users set password = ? where workspace = ? and name = ?

-- name: subject
select subject from users where workspace = ? and name = ?

-- name: name_of_subject
select name from users where subject = ? and workspace = ?

-- name: write_subject
update users set subject = ? where workspace = ? and name = ?

-- name: workspaces
select name, created_at from workspaces order by name

-- name: key
select
    k.id, k.workspace, k.name, k.role, k.person, k.created_by, k.created_at, k.used_at, k.revoked_at,
    k.agents, k.tools, k.requester, k.expires_at, k.rotated_from, k.root, k.per_minute, k.pending, k.digest,
    u.name, u.role, u.teams, u.email, u.away_until, u.away_to, u.removed_at
from keys k left join users u on u.workspace = k.workspace and u.name = k.person
where k.id = ?

-- name: keys
select
    id, workspace, name, role, person, created_by, created_at, used_at, revoked_at,
    agents, tools, requester, expires_at, rotated_from, root, per_minute, pending
from keys where workspace = ? order by created_at desc, id limit 1000

-- name: keys_of
select
    id, workspace, name, role, person, created_by, created_at, used_at, revoked_at,
    agents, tools, requester, expires_at, rotated_from, root, per_minute, pending
from keys where workspace = ? and person = ? and person <> ''

-- name: insert_key
insert into keys (
    id, workspace, name, role, person, created_by, created_at,
    agents, tools, requester, expires_at, rotated_from, root, per_minute, pending, digest
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: keys_made_by
select
    id, workspace, name, role, person, created_by, created_at, used_at, revoked_at,
    agents, tools, requester, expires_at, rotated_from, root, per_minute, pending
from keys where workspace = ? and created_by = ? and person <> created_by and revoked_at is null

-- name: expire_key
update keys set expires_at = ? where id = ?

-- name: revoke_key
update keys set revoked_at = ? where id = ?

-- name: touch_key
update keys set used_at = ? where id = ?

-- name: session
select
    s.workspace, s.person, s.via, s.created_at, s.expires_at,
    u.name, u.role, u.teams, u.email, u.away_until, u.away_to, u.removed_at
from sessions s join users u on u.workspace = s.workspace and u.name = s.person
where s.digest = ?

-- name: sessions_of
select digest from sessions where workspace = ? and person = ? order by created_at, digest

-- name: insert_session
insert into sessions (digest, workspace, person, via, created_at, expires_at) values (?, ?, ?, ?, ?, ?)

-- name: end_session
delete from sessions where digest = ?

-- name: expired_sessions
select digest from sessions where expires_at <= ? order by expires_at limit ?

-- name: link_by_digest
select workspace, person, role, teams, created_by, expires_at from links where digest = ?

-- name: links_of
select digest from links where workspace = ? and person = ? and person <> ''

-- name: links_made_by
select digest from links where workspace = ? and created_by = ? and person <> created_by

-- name: insert_link
insert into links (digest, workspace, person, role, teams, created_by, expires_at) values (?, ?, ?, ?, ?, ?, ?)

-- name: spend_link
delete from links where digest = ?

-- name: expired_links
select digest from links where expires_at <= ? order by expires_at limit ?

-- name: idempotency_key
select digest, status, body, at from answers where workspace = ? and asker = ? and key = ?

-- name: reserve_idempotency_key
insert into answers (workspace, asker, key, digest, status, body, at) values (?, ?, ?, ?, ?, ?, ?)
on conflict do nothing

-- name: take_over_idempotency_key
update answers set body = ?, at = ? where workspace = ? and asker = ? and key = ? and at = ? and status = 0

-- name: save_idempotency_key
update answers set status = ?, body = ? where workspace = ? and asker = ? and key = ? and body = ? and status = 0

-- name: release_idempotency_key
delete from answers where workspace = ? and asker = ? and key = ? and body = ? and status = 0

-- name: erase_idempotency_keys
update answers set status = ?, body = ? where workspace = ? and status > 0

-- name: expired_idempotency_keys
select workspace, asker, key from answers where at < ? order by at limit ?

-- name: delete_idempotency_key
delete from answers where workspace = ? and asker = ? and key = ?

-- name: tool_item
select id, body, at from records where workspace = ? and kind = ? and id = ?

-- name: tool_items
select id, body, at from records where workspace = ? and kind = ? order by id limit ?

-- name: write_tool_item
insert into records (workspace, kind, id, body, at) values (?, ?, ?, ?, ?)
on conflict (workspace, kind, id) do update set body = excluded.body, at = excluded.at

-- name: delete_tool_item
delete from records where workspace = ? and kind = ? and id = ?

-- name: applied_change
select result from applied where workspace = ? and key = ?

-- name: insert_applied_change
insert into applied (workspace, key, result, at) values (?, ?, ?, ?)

-- name: expired_applied_changes
select workspace, key from applied where at < ? order by at limit ?

-- name: delete_applied_change
delete from applied where workspace = ? and key = ?

-- name: migrations
select name, applied_at from migrations order by number

-- name: recorded
select
    e.seq, e.at, e.kind, e.data, e.approval_id, c.content, a.run_id, a.call_id, a.tool, a.agent, a.agent_path,
    a.thread_id, a.requester, a.spec_sha256, p.args, p.sentence, a.owner, a.known
from events e
    left join contents c on c.workspace = e.workspace and c.seq = e.seq
    left join approvals a on a.workspace = e.workspace and a.id = e.approval_id
    left join payloads p on p.workspace = e.workspace and p.id = e.approval_id
where e.workspace = ? and e.seq > ? and e.at >= ? and e.kind in ('proposed', 'allowed', 'denied')
order by e.seq limit ?

-- name: count_recorded
select count(*), count(coalesce(p.id, case when e.kind = 'denied' then c.workspace end))
from events e
    left join contents c on c.workspace = e.workspace and c.seq = e.seq and e.kind = 'denied'
        and e.data not like '%"args_left_out":%'
    left join payloads p on p.workspace = e.workspace and p.id = e.approval_id and p.args is not null
where e.workspace = ? and e.at >= ? and e.kind in ('proposed', 'allowed', 'denied')

-- name: erase_approval
update approvals set args_sha256 = ?, nonce = ?, decision = ?, progress = ?, version = ?
where workspace = ? and id = ? and version = ?

-- name: erase_payload
delete from payloads where workspace = ? and id = ?

-- name: erase_search_document
update docs set words = ? where workspace = ? and id = ?

-- name: erase_content
delete from contents where workspace = ? and seq = ?

-- name: approval_events
select e.seq, c.seq
from events e left join contents c on c.workspace = e.workspace and c.seq = e.seq
where e.workspace = ? and e.approval_id = ? and e.approval_id <> '' order by e.approval_id, e.seq

-- name: content_of
select seq from contents where workspace = ? and seq = cast(? as bigint)

-- name: contents_by_actor
select e.seq, e.approval_id
from events e join contents c on c.workspace = e.workspace and c.seq = e.seq
where e.workspace = ? and e.actor = ? and e.seq > ? order by e.seq limit ?

-- name: contents_about_people
select e.seq, e.data, c.content
from events e join contents c on c.workspace = e.workspace and c.seq = e.seq
where e.workspace = ? and e.seq > ?
    and e.kind in (
        'denied', 'sign_in_failed', 'user_changed', 'key_created', 'key_rotated', 'away_changed', 'stated',
        'delivered', 'delivery_parked', 'delivery_again', 'identity_bound', 'identity_unbound'
    )
order by e.seq limit ?

-- name: contents_of_threads
select e.seq, e.data, c.content
from events e join contents c on c.workspace = e.workspace and c.seq = e.seq
where e.workspace = ? and e.seq > ? and e.kind in ('thread_confirmed', 'denied')
order by e.seq limit ?

-- name: erase_user
update users set email = '', subject = '', teams = '[]' where workspace = ? and name = ? and removed_at is not null

-- name: erase_keys
update keys set name = '' where workspace = ? and person = ? and person <> '' and revoked_at is not null

-- name: consumer_offset
select seq from marks where workspace = ? and name = ?

-- name: write_consumer_offset
insert into marks (workspace, name, seq) values (?, ?, ?)
on conflict (workspace, name) do update set seq = excluded.seq

-- name: retained
select h.workspace, coalesce(m.seq, 0), e.at, f.at
from heads h
    left join marks m on m.workspace = h.workspace and m.name = 'retention'
    join events e on e.workspace = h.workspace and e.seq = coalesce(m.seq, 0) + 1
    left join events f on f.workspace = h.workspace and f.seq = coalesce(m.seq, 0) + cast(? as bigint)

-- name: retained_entries
select seq, at, kind, approval_id from events where workspace = ? and seq > ? order by seq limit ?

-- name: unindexed
select h.workspace
from heads h left join marks m on m.workspace = h.workspace and m.name = 'search'
where h.seq > coalesce(m.seq, 0) order by h.seq - coalesce(m.seq, 0) desc limit ?

-- name: search_offset
select h.seq, coalesce(m.seq, 0)
from heads h left join marks m on m.workspace = h.workspace and m.name = 'search' where h.workspace = ?

-- name: events_behind
select seq, approval_id, at from events where workspace = ? and seq > ? order by seq limit ?

-- name: to_index
select {approval}, {payload}, d.words
from (
    select distinct workspace, approval_id from events
    where workspace = ? and seq > ? and seq <= ? and approval_id <> ''
) e
    cross join approvals a
    left join payloads p on p.workspace = a.workspace and p.id = a.id
    left join docs d on d.workspace = a.workspace and d.id = a.id
where a.workspace = e.workspace and a.id = e.approval_id

-- name: insert_search_document
insert into docs (workspace, id, words) values (?, ?, ?) on conflict do nothing

-- name: update_search_document
update docs set words = ? where workspace = ? and id = ?

-- name: step_back_consumer_offset
insert into marks (workspace, name, seq) values (?, ?, ?)
on conflict (workspace, name) do update set seq = marks.seq - 1

-- name: last_search_document_before
select d.doc
from (
    select workspace, id from approvals
    where workspace = ? and created_at < ? order by created_at desc, id desc limit 1
) a cross join docs d
where d.workspace = a.workspace and d.id = a.id

-- name: first_search_document_from
select d.doc
from (
    select workspace, id from approvals where workspace = ? and created_at >= ? order by created_at, id limit 1
) a cross join docs d
where d.workspace = a.workspace and d.id = a.id

-- name: oldest_pending
select min(created_at) from (
    select created_at from approvals where workspace = ? and status = 'pending' order by expires_at limit 10000
) as waiting

-- name: event_metrics
select e.seq, e.kind, e.at - a.created_at, case when e.kind in ('delivered', 'delivery_parked') then e.data end
from (
    select workspace, seq, at, kind, approval_id, data from events where workspace = ? and seq > ? order by seq limit ?
) as e
left join approvals a
    on a.workspace = e.workspace and a.id = e.approval_id and e.kind in ('approved', 'rejected', 'responded')
order by e.seq

-- name: write_thread
insert into threads (
    workspace, id, agent, person, title, parent, parent_call, path, status, lines, due_at, woken, runner, fence, confirmation,
    created_at, updated_at
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (workspace, id) do update set
    agent = excluded.agent, title = excluded.title, status = excluded.status, lines = excluded.lines,
    due_at = excluded.due_at,
    woken = excluded.woken, runner = excluded.runner, fence = excluded.fence, confirmation = excluded.confirmation,
    updated_at = excluded.updated_at

-- name: wake_thread
update threads set woken = woken + 1 where workspace = ? and id = ?

-- name: ready_thread
update threads set due_at = ? where workspace = ? and id = ? and status = 'waiting'

-- name: thread
select
    workspace, id, agent, person, title, parent, parent_call, path, status, lines, due_at, woken, runner, fence, confirmation,
    created_at, updated_at
from threads where workspace = ? and id = ?

-- name: threads_of
select
    workspace, id, agent, person, title, parent, parent_call, path, status, lines, due_at, woken, runner, fence, confirmation,
    created_at, updated_at
from threads where workspace = ? and person = ? and parent = '' and (updated_at < ? or (updated_at = ? and id < ?))
order by updated_at desc, id desc limit ?

-- name: threads_of_all
select
    workspace, id, agent, person, title, parent, parent_call, path, status, lines, due_at, woken, runner, fence, confirmation,
    created_at, updated_at
from threads where workspace = ? and parent = '' and (updated_at < ? or (updated_at = ? and id < ?))
order by updated_at desc, id desc limit ?

-- name: threads_below
select
    workspace, id, agent, person, title, parent, parent_call, path, status, lines, due_at, woken, runner, fence, confirmation,
    created_at, updated_at
from threads where workspace = ? and parent = ? and parent <> '' order by created_at limit 1000

-- name: threads_of_agent
select status, count(*) from threads where workspace = ? and agent = ? group by status

-- name: due_threads
select workspace, id from threads where due_at is not null and due_at <= ? order by due_at limit ?

-- name: next_due_thread
select min(due_at) from threads where due_at is not null

-- name: running_threads
select workspace, id, runner from threads where status = 'running' limit 10000

-- name: insert_thread_entry
insert into lines (workspace, thread_id, n, at, kind, actor, body) values (?, ?, ?, ?, ?, ?, ?)

-- name: thread_entries
select n, at, kind, actor, body from lines where workspace = ? and thread_id = ? and n > ? and n < ? order by n limit ?

-- name: erase_thread_entries
delete from lines where workspace = ? and thread_id = ?

-- name: count_thread_entries
select count(*) from lines where workspace = ? and thread_id = ? and kind <> 'erased'

-- name: write_draft
insert into drafts (workspace, thread_id, line, words) values (?, ?, ?, ?)
on conflict (workspace, thread_id) do update set line = excluded.line, words = excluded.words

-- name: drop_draft
delete from drafts where workspace = ? and thread_id = ?

-- name: draft
select line, words from drafts where workspace = ? and thread_id = ?

-- name: documents
select path, stamp from documents where workspace = ? order by path

-- name: document
select stamp, version, length from documents where workspace = ? and path = ?

-- name: write_document
insert into documents (workspace, path, stamp, version, length) values (?, ?, ?, ?, ?)
on conflict (workspace, path) do update set
    stamp = excluded.stamp, version = excluded.version, length = excluded.length

-- name: delete_document
delete from documents where workspace = ? and path = ?

-- name: insert_passage
insert into passages (workspace, path, version, start, words) values (?, ?, ?, ?, ?)

-- name: delete_passage
delete from passages where doc = ?

-- name: count_passages
select count(*) from passages where workspace = ? and path = ? and version = ?

-- name: passages_of
select doc from passages where workspace = ? and path = ? and version = ? order by start limit ?

-- name: unshown_passages
select p.path, p.version from passages p
where p.workspace = ? and p.version < ? and not exists (
    select 1 from documents d where d.workspace = p.workspace and d.path = p.path and d.version = p.version
)
group by p.path, p.version limit ?

-- name: passages
select p.start, p.words from documents d
join passages p on p.workspace = d.workspace and p.path = d.path and p.version = d.version
where d.workspace = ? and d.path = ? and p.start > ? and p.start < ? order by p.start

-- name: event_counts_by_time
select e.at / cast(? as bigint), e.kind, count(*), count(a.start_by)
from (
    select workspace, at, kind, approval_id from events
    where workspace = ? and seq > cast(? as bigint) and seq <= cast(? as bigint) and kind in {charted_kinds}
) as e
left join approvals a on a.workspace = e.workspace and a.id = e.approval_id and e.kind = 'cancelled'
group by 1, 2 limit 20000

-- name: event_counts_by_tool
select a.tool, case when e.kind = 'approved' and a.decision like '%"kind":"edit"%' then 'edited' else e.kind end, count(*)
from (
    select workspace, kind, approval_id from events
    where workspace = ? and seq > cast(? as bigint) and seq <= cast(? as bigint) and kind in {charted_kinds}
) as e
cross join approvals a where a.workspace = e.workspace and a.id = e.approval_id and e.kind <> 'edited'
group by 1, 2 order by 3 desc limit 2000

-- name: event_counts_by_agent
select a.agent, case when e.kind = 'approved' and a.decision like '%"kind":"edit"%' then 'edited' else e.kind end, count(*)
from (
    select workspace, kind, approval_id from events
    where workspace = ? and seq > cast(? as bigint) and seq <= cast(? as bigint) and kind in {charted_kinds}
) as e
cross join approvals a where a.workspace = e.workspace and a.id = e.approval_id and e.kind <> 'edited'
group by 1, 2 order by 3 desc limit 2000

-- name: times_to_decide
select
    part, n, max(case when place = (n + 1) / 2 then waited end), max(case when place = (n * 19 + 19) / 20 then waited end)
from (
    select part, waited,
        row_number() over (partition by part order by waited) as place, count(*) over (partition by part) as n
    from (
        select e.at / cast(? as bigint) as part, e.at - a.created_at as waited
        from (
            select workspace, at, approval_id from events
            where workspace = ? and seq > cast(? as bigint) and seq <= cast(? as bigint)
                and kind in ('approved', 'rejected', 'responded') and actor <> 'interlock'
        ) as e
        cross join approvals a where a.workspace = e.workspace and a.id = e.approval_id
    ) as waits
) as ranked
group by part, n limit 1000

-- name: reads_of_tools
with recursive named (tool) as (
    select min(tool) from reads where workspace = ?
    union all
    select (select min(r.tool) from reads r where r.workspace = ? and r.tool > named.tool)
    from named where named.tool is not null
)
select tool, n from (
    select named.tool, (
        select sum(r.n) from reads r where r.workspace = ? and r.tool = named.tool and r.minute >= cast(? as bigint)
    ) as n
    from (select tool from named where tool is not null limit 1000) as named
) as summed
where n > 0 order by n desc, tool limit 100

-- name: newest_agents
with recursive named (agent) as (
    select min(agent) from approvals where workspace = ? and agent <> ''
    union all
    select (select min(a.agent) from approvals a where a.workspace = ? and a.agent > named.agent and a.agent <> '')
    from named where named.agent is not null
)
select agent, max(last_at) from (
    select named.agent, (
        select a.created_at from approvals a
        where a.workspace = ? and a.agent = named.agent and a.agent <> '' order by a.created_at desc limit 1
    ) as last_at
    from (select agent from named where agent is not null limit 10001) as named
    union all
    select agent, created_at from (
        select agent, created_at from approvals where workspace = ? order by created_at desc, id desc limit 10000
    ) as recent
    where agent <> ''
) as seen
group by agent order by 2 desc, agent limit 10001

-- name: agent_calls
with named (agent) as (values (cast(? as text)))
select named.agent, (
    select a.created_at from approvals a
    where a.workspace = ? and a.agent = named.agent and a.agent <> '' order by a.created_at desc limit 1
), (
    select a.id from approvals a
    where a.workspace = ? and a.agent = named.agent and a.agent <> '' order by a.created_at desc limit 1
), (
    select count(*) from (
        select 1 from approvals a
        where a.workspace = ? and a.agent = named.agent and a.agent <> '' and a.created_at >= ? limit 1001
    ) as counted
), (
    select recent.id from (
        select a.id, a.owner, a.created_at from approvals a
        where a.workspace = ? and a.agent = named.agent and a.agent <> '' order by a.created_at desc limit 100
    ) as recent
    where recent.owner = 'agent:' || replace(replace(named.agent, '\', '\\'), '|', '\|')
    order by recent.created_at desc limit 1
)
from named order by named.agent

-- name: pending_by_agent
select agent, count(*) from (
    select agent from approvals where workspace = ? and status = 'pending' order by expires_at, id limit 10000
) as waiting
group by agent order by agent

-- name: denied_by_agent
select actor, count(*), max(at) from (
    select actor, at from events where workspace = ? and kind = 'denied' order by seq desc limit 10001
) as recent
where at >= ? group by actor order by actor

-- name: outcomes_of_agent
select created_at / 86400000, tool, outcome, count(*), max(created_at)
from (
    select created_at, tool, case
        when decision like '%"by":"policy"%' or decision like '%"via":"grant"%' then 'allowed'
        when decision like '%"kind":"edit"%' then 'edited'
        when decision like '%"kind":"approve"%' then 'approved'
        else status
    end as outcome
    from approvals where workspace = ? and agent = ? and agent <> '' and created_at >= ?
    order by created_at desc limit 10001
) as recent
group by 1, 2, 3 order by 1, 2, 3

-- name: call_times_of_agent
select (select min(created_at) from approvals where workspace = ? and agent = ? and agent <> ''),
    (select max(created_at) from approvals where workspace = ? and agent = ? and agent <> '')

-- name: unrouted
select h.workspace, coalesce(m.seq, -1), h.seq
from heads h left join marks m on m.workspace = h.workspace and m.name = 'deliveries'
where h.seq > coalesce(m.seq, -1) and cast(? as text) like '%,' || h.workspace || ',%' limit ?

-- name: first_pending
select e.seq from events e where e.workspace = ? and e.at >= (
    select min(a.created_at) from approvals a where a.workspace = ? and a.status = 'pending'
)
order by e.seq limit 1

-- name: events_after_offset
select e.seq, e.approval_id, e.kind,
    (select a.status from approvals a where a.workspace = e.workspace and a.id = e.approval_id),
    (select count(*) from (
        select 1 from deliveries d
        where d.workspace = e.workspace and d.approval_id = e.approval_id and d.approval_id <> '' limit 1
    ) as known),
    (select a.run_id from approvals a where a.workspace = e.workspace and a.id = e.approval_id)
from events e where e.workspace = ? and e.seq > ? and e.seq <= ? order by e.seq

-- name: write_delivery
insert into deliveries (
    {delivery}
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (workspace, id) do update set
    status = excluded.status, wanted = excluded.wanted, said = excluded.said,
    nudge = excluded.nudge, nudged = excluded.nudged, ref = excluded.ref,
    attempts = excluded.attempts, fence = excluded.fence, runner = excluded.runner,
    error = excluded.error, since = excluded.since, due_at = excluded.due_at,
    sent_at = excluded.sent_at, spent_at = excluded.spent_at

-- name: delivery
select {delivery}
from deliveries where workspace = ? and id = ?

-- name: deliveries_of
select {delivery}
from deliveries where workspace = ? and approval_id = ? and approval_id <> '' order by created_at, id limit 1000

-- name: due_workspaces
select workspace, min(due_at) from (
    select h.workspace, (
        select min(d.due_at) from deliveries d
        where d.channel = ? and d.workspace = h.workspace and d.priority = p.priority and d.due_at is not null
    ) as due_at
    from heads h cross join (select 'high' as priority union all select 'medium' union all select 'low') as p
) as due
where due_at is not null group by workspace order by 2 limit ?

-- name: next_delivery
select min(due_at) from (
    select (
        select min(d.due_at) from deliveries d
        where d.channel = ? and d.workspace = ? and d.priority = p.priority and d.due_at is not null
    ) as due_at
    from (select 'high' as priority union all select 'medium' union all select 'low') as p
) as due

-- name: due_channels
with recursive named (channel) as (
    select min(channel) from deliveries where due_at is not null
    union all
    select (select min(d.channel) from deliveries d where d.due_at is not null and d.channel > named.channel)
    from named where named.channel is not null
)
select channel from named where channel is not null limit 1000

-- name: due_deliveries
select * from (
    select {delivery}
    from deliveries where channel = ? and workspace = ? and priority = ? and due_at is not null and due_at <= ?
    order by due_at limit ?
) as low
union all
select * from (
    select {delivery}
    from deliveries where channel = ? and workspace = ? and priority = ? and due_at is not null and due_at <= ?
    order by due_at limit ?
) as medium
union all
select * from (
    select {delivery}
    from deliveries where channel = ? and workspace = ? and priority = ? and due_at is not null and due_at <= ?
    order by due_at limit ?
) as high

-- name: recent_send_counts
select place, person, cast(sum(n) as bigint) from (
    select place, person, count(*) as n from deliveries
    where workspace = ? and channel = ? and sent_at is not null and sent_at > ? group by place, person
    union all
    select place, person, count(*) from deliveries
    where workspace = ? and channel = ? and status = 'sending' and created_at >= 0 and +due_at > ?
        and (said = '' or nudge > nudged) and reason <> 'test'
    group by place, person
) as told
group by place, person

-- name: sending_deliveries
select d.workspace, d.id, d.runner
from heads h cross join deliveries d where d.workspace = h.workspace and d.status = 'sending' and d.created_at >= 0
limit ?

-- name: listed_deliveries
select {delivery}
from deliveries
where workspace = ? and status = ? and (created_at < ? or (created_at = ? and id < ?))
order by created_at desc, id desc limit ?

-- name: waiting_deliveries
select count(*), min(case when attempts > 0 or due_at <= ? then since end), max(error)
from (
    select since, due_at, attempts, error from deliveries
    where channel = ? and workspace = ? and due_at is not null order by priority, due_at limit 1000
) as d

-- name: parked_deliveries
select channel, error from deliveries
where workspace = ? and status = 'parked' order by created_at desc, id desc limit 1000

-- name: last_sent_at
select max(sent_at) from deliveries where workspace = ? and channel = ? and sent_at is not null

-- name: deliveries_to_person
select id from deliveries
where workspace = ? and person = ? and status <> 'sending' and not exists (
    select 1 from approvals a
    where a.workspace = deliveries.workspace and a.id = deliveries.approval_id and a.status = 'pending'
) limit ?

-- name: ended_deliveries
select d.workspace, d.id
from workspaces w cross join (
    select 'sent' as status union all select 'dropped' union all select 'grouped' union all select 'parked'
) as s cross join deliveries d
where d.workspace = w.name and d.status = s.status and d.created_at < ? and not exists (
    select 1 from approvals a where a.workspace = d.workspace and a.id = d.approval_id and a.status = 'pending'
) limit ?

-- name: drop_delivery
delete from deliveries where workspace = ? and id = ?

-- name: finished_deliveries_of
select id from deliveries
where workspace = ? and approval_id = ? and approval_id <> '' and created_at >= 0
    and status in ('sent', 'dropped', 'grouped') limit 1000

-- name: write_identity
insert into identities (workspace, channel, outside, person, at) values (?, ?, ?, ?, ?)
on conflict (workspace, channel, outside) do update set person = excluded.person, at = excluded.at

-- name: drop_identity
delete from identities where workspace = ? and channel = ? and outside = ?

-- name: identity
select person from identities where workspace = ? and channel = ? and outside = ?

-- name: identities_of
select channel, outside from identities where workspace = ? and person = ? limit 10000

-- name: identities
select channel, outside, person, at from identities where workspace = ? order by person, channel, outside limit 10000

-- name: write_disabled_channel
insert into channel_switches (workspace, channel, off_at, why) values (?, ?, ?, ?)
on conflict (workspace, channel) do update set off_at = excluded.off_at, why = excluded.why

-- name: delete_disabled_channel
delete from channel_switches where workspace = ? and channel = ?

-- name: disabled_channels
select workspace, channel, off_at, why from channel_switches

-- name: disabled_channel
select off_at from channel_switches where workspace = ? and channel = ?

-- name: write_pause
insert into pauses (
    workspace, run_id, called, agent, owner, runner, lease_until, attempts, fence, paused_at, state
) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (workspace, run_id) do update set
    called = excluded.called, agent = excluded.agent, runner = excluded.runner, lease_until = excluded.lease_until,
    attempts = excluded.attempts, fence = excluded.fence, paused_at = excluded.paused_at, state = excluded.state

-- name: hold_pause
update pauses set runner = ?, lease_until = ?, attempts = ?, fence = ? where workspace = ? and run_id = ?

-- name: drop_pause
delete from pauses where workspace = ? and run_id = ?

-- name: pause
select run_id, called, agent, owner, runner, lease_until, attempts, fence, paused_at
from pauses where workspace = ? and run_id = ?

-- name: pause_state
select fence, state from pauses where workspace = ? and run_id = ?

-- name: paused_runs
select
    p.run_id, p.called, p.agent, p.owner, p.runner, p.lease_until, p.attempts, p.fence, p.paused_at, (
        select count(*) from approvals a cross join approvals b
        where a.workspace = p.workspace and a.run_id = p.run_id and b.workspace = a.workspace and b.id = a.id
            and b.status || '' = 'pending' and b.expires_at > ?
    )
from pauses p
where p.workspace = ? and (? = '' or p.owner = ?) and (p.paused_at > ? or (p.paused_at = ? and p.run_id > ?))
order by p.paused_at, p.run_id limit ?

-- name: paused_runs_of
select
    p.run_id, p.called, p.agent, p.owner, p.runner, p.lease_until, p.attempts, p.fence, p.paused_at, (
        select count(*) from approvals a cross join approvals b
        where a.workspace = p.workspace and a.run_id = p.run_id and b.workspace = a.workspace and b.id = a.id
            and b.status || '' = 'pending' and b.expires_at > ?
    )
from pauses p
where p.workspace = ? and p.agent = ? and (? = '' or p.owner = ?)
    and (p.paused_at > ? or (p.paused_at = ? and p.run_id > ?))
order by p.paused_at, p.run_id limit ?

-- name: ready_pauses
select p.run_id from pauses p
where p.workspace = ? and p.agent = ? and (? = '' or p.owner = ?) and p.lease_until <= ? and not exists (
    select 1 from approvals a cross join approvals b
    where a.workspace = p.workspace and a.run_id = p.run_id and b.workspace = a.workspace and b.id = a.id and (
        (b.status || '' = 'pending' and b.expires_at > ?) or (b.status || '' = 'rejected' and b.release_at > ?)
    )
)
order by p.paused_at, p.run_id limit ?

-- name: waits_for
select 1 from approvals a cross join approvals b
where a.workspace = ? and a.run_id = ? and b.workspace = a.workspace and b.id = a.id and (
    (b.status || '' = 'pending' and b.expires_at > ?) or (b.status || '' = 'rejected' and b.release_at > ?)
) limit 1

-- name: held_pauses
select run_id, runner, fence from pauses
where workspace = ? and agent = ? and runner <> '' and lease_until > ? limit 1000

-- name: count_pauses
select count(*), min(paused_at) from (
    select paused_at from pauses where workspace = ? order by paused_at, run_id limit 10000
) as paused

-- name: paused_bytes
select coalesce(sum(length(state) + 1024), 0) from pauses where workspace = ? and owner = ? and run_id <> ?

-- name: pauses_called
select run_id from pauses where workspace = ? and (run_id = ? or called = ?) limit 100

-- name: old_pauses
select p.workspace, p.run_id, p.fence
from workspaces w cross join pauses p
where p.workspace = w.name and p.paused_at < ? and p.lease_until < ? and not exists (
    select 1 from approvals a cross join payloads y
    where a.workspace = p.workspace and a.run_id = p.run_id and y.workspace = a.workspace and y.id = a.id
) limit ?
