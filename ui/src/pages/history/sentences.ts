import type { Schemas } from "../../api/client";
import { escapeInvisible } from "../../components/escapeInvisible";

const DELIVERY_KINDS = new Set(["delivered", "delivery_parked", "delivery_again"]);

export type TimelineEntry = Schemas["TimelineEntryJson"];
type Describe = (entry: TimelineEntry) => string;

/** The action without the actor: "approved it", after "bob". */
const DESCRIPTIONS: Record<string, Describe> = {
  proposed: (e) => `asked to run ${tool(e)}${rule(e)}`,
  allowed: (e) => `was allowed to run ${tool(e)} without approval: ${allowedBy(e)}`,
  denied: (e) =>
    entryData(e, "by") === "preview"
      ? `wanted to run ${tool(e)}, which would have failed, so it was not run`
      : `wanted to run ${tool(e)} and was denied${rule(e)}`,
  voted: (e) => `approved it${stage(e)}; more approvals are needed`,
  approved: (e) =>
    entryData(e, "by") === "expiry" ? "approved it on expiry, as the rule says" : "approved it",
  edited: (e) => `changed ${countOf(Number(entryContent(e, "changed") ?? 0), "argument", "the arguments")}`,
  responded: () => "answered it instead of running it",
  rejected: () => "rejected it",
  undone: () => "undid the rejection",
  delegated: (e) => `delegated it${people(e)}`,
  reviewer_removed: (e) => `removed the votes and delegations of ${text(e, "user")}`,
  decision_refused: (e) => `tried to ${verb(e)} it and was refused: ${refusal(e)}`,
  cancelled: () => "cancelled it",
  claimed: () => "claimed it",
  released: () => "released it",
  commented: () => "commented",
  asked: () => "asked the agent",
  replied: () => "replied",
  reminded: () => "reminded the approvers",
  escalated: (e) => `escalated it${people(e)}`,
  expired: () => "expired it: nobody decided in time",
  lapsed: () => "let the approval lapse: it was not started in time",
  started: (e) =>
    Number(entryData(e, "fence")) > 1 ? `started it again (start ${entryData(e, "fence")})` : "started it",
  succeeded: () => "ran it: succeeded",
  failed: () => "ran it: failed",
  lost: () => "lost contact with the run: outcome unknown",
  finished_late: () => "reported a result too late; it was kept as evidence",
  resolved: (e) => `recorded that it ${text(e, "status") || "ended"}`,
  user_changed: (e) => `made ${text(e, "user")} ${a(text(e, "role"))}`,
  user_removed: (e) => `removed ${text(e, "user")}`,
  away_changed: (e) =>
    entryData(e, "until") ? `set ${text(e, "user")} as away` : `set ${text(e, "user")} as back`,
  key_created: (e) => `created a key for ${a(text(e, "role"))}`,
  key_rotated: (e) => `created a key to replace ${text(e, "replaces")}`,
  key_revoked: () => "revoked a key",
  link_created: (e) => `created a sign-in link for ${text(e, "user") || a(text(e, "role"))}`,
  code_created: (e) => `mailed a sign-in code to ${text(e, "user")}`,
  link_used: () => "used a sign-in link",
  password_changed: (e) => `set the password of ${text(e, "user")}`,
  signed_in: (e) => `signed in by ${text(e, "via")}`,
  signed_out: (e) => (text(e, "user") ? `signed ${text(e, "user")} out everywhere` : "signed out"),
  sign_in_failed: () => "recorded a failed sign-in",
  thread_said: () => "sent a chat message",
  thread_replied: () => "replied in a chat",
  thread_asked: (e) => `asked in a chat to run ${tool(e)}`,
  thread_decided: (e) => `received the decision on a call in a chat: ${text(e, "status")}`,
  thread_delegated: (e) => `delegated work to another agent${text(e, "agent") && `, ${text(e, "agent")}`}`,
  thread_resulted: (e) => `got the result of ${tool(e)} in a chat`,
  thread_confirming: (e) => `was asked to confirm ${tool(e)} in a chat`,
  thread_confirmed: (e) => `${confirmed(e)} in a chat`,
  thread_failed: () => "failed in a chat",
  thread_stopped: () => "stopped a chat",
  thread_retried: () => "retried in a chat",
  thread_resumed: () => "resumed a chat",
  thread_ended: () => "finished a turn in a chat",
  thread_erased: () => "erased the messages of a chat",
  run_opened: () => "started a run",
  run_resumed: () => "resumed a run",
  run_closed: () => "ended a run",
  granted: (e) => `created a grant for ${tool(e)}`,
  grant_revoked: (e) => `revoked the grant for ${tool(e)}`,
  delivered: (e) => delivered(e),
  delivery_parked: (e) => `could not notify ${recipientVia(e)}${because(e, "error")}`,
  delivery_again: (e) => `retried the message to ${recipientVia(e)}`,
  identity_bound: (e) => `linked the ${text(e, "channel")} account of ${text(e, "user")}`,
  identity_unbound: (e) => `unlinked the ${text(e, "channel")} account of ${text(e, "user") || "somebody"}`,
  channel_off: (e) => `disabled the channel ${text(e, "channel")}${because(e, "why")}`,
  channel_on: (e) => `enabled the channel ${text(e, "channel")}`,
  policy_changed: (e) => `put a policy in force${text(e, "version") && `, version ${text(e, "version")}`}`,
  agent_changed: (e) => `changed the settings of the agent ${text(e, "agent")}`,
  agent_deleted: (e) =>
    entryData(e, "restored")
      ? `restored the original settings of the agent ${text(e, "agent")}${because(e, "reason")}`
      : `deleted the agent ${text(e, "agent")}${because(e, "reason")}`,
  content_changed: (e) => `${text(e, "action")} the ${text(e, "item").replaceAll("_", " ")} ${text(e, "id")}`,
  frozen: (e) => `froze ${scope(e)}${because(e, "reason")}`,
  unfrozen: (e) => `unfroze ${scope(e)}${because(e, "reason")}`,
  deferred: () => "extended its deadlines by the duration of the freeze",
  tool_pinned: (e) => `pinned the tool ${tool(e)} as ${text(e, "effect")}`,
  tool_unpinned: (e) => `removed the pin of the tool ${tool(e)}`,
  erased: (e) => `erased the content of ${erasedWhat(e)}`,
};

export const EVENT_KINDS = Object.keys(DESCRIPTIONS);

/** "bob approved it". An unknown kind is described by its name. */
export function describeEntry(entry: TimelineEntry): string {
  const describe = DESCRIPTIONS[entry.kind];
  return `${nameActor(entry.actor)} ${describe ? describe(entry) : escapeInvisible(entry.kind.replaceAll("_", " "))}`;
}

export function nameActor(name: string): string {
  if (name === "interlock") return "Interlock";
  if (name === "policy") return "The policy";
  if (name === "agent") return "The agent";
  const [kind, ...rest] = name.split(":");
  if (kind === "agent") return `The agent ${escapeInvisible(rest.join(":"))}`;
  if (kind === "runner") return "The runner";
  return escapeInvisible(name);
}

/** Whether its content was erased. */
export const wasErased = (entry: TimelineEntry): boolean => !entry.content && Boolean(entry.digest);

export const entryData = (entry: TimelineEntry, name: string): unknown => entry.data[name];
export const entryContent = (entry: TimelineEntry, name: string): unknown => entry.content?.[name];

function text(entry: TimelineEntry, name: string): string {
  const found = entryData(entry, name);
  return typeof found === "string" || typeof found === "number" ? escapeInvisible(String(found)) : "";
}

/** "ada via mail" */
const recipientVia = (entry: TimelineEntry): string =>
  `${nameRecipient(entry) || "people"} via ${text(entry, "channel")}`;

function delivered(entry: TimelineEntry): string {
  if (entryData(entry, "what") === "reminded") return `reminded ${recipientVia(entry)}`;
  if (entryData(entry, "what") === "changed") return `notified ${recipientVia(entry)} of a change`;
  if (entryData(entry, "reason") === "woken")
    return `signalled the waiting workflow via ${text(entry, "channel")}`;
  return `notified ${recipientVia(entry)}${entryData(entry, "reason") === "expired" ? " of the expiry" : ""}`;
}

function because(entry: TimelineEntry, name: string): string {
  const why = entryContent(entry, name);
  return typeof why === "string" && why ? `: ${escapeInvisible(why)}` : "";
}

const scope = (entry: TimelineEntry): string =>
  text(entry, "name") ? `the ${text(entry, "scope")} ${text(entry, "name")}` : "the workspace";

/** An answer is yes or no; every other message closes the question undecided. */
function confirmed(entry: TimelineEntry): string {
  const answer = text(entry, "answer");
  if (answer === "closed") return "left a question unanswered";
  return `answered ${answer || "a question"}`;
}

const tool = (entry: TimelineEntry): string => text(entry, "tool") || "a tool";
const rule = (entry: TimelineEntry): string =>
  text(entry, "rule") ? ` (rule “${text(entry, "rule")}”)` : "";
const a = (role: string): string => (/^[aeiou]/.test(role) ? `an ${role}` : `a ${role || "person"}`);
const stage = (entry: TimelineEntry): string =>
  Number(entryData(entry, "stage")) > 0 ? ` in stage ${Number(entryData(entry, "stage")) + 1}` : "";

function allowedBy(entry: TimelineEntry): string {
  if (entryData(entry, "by") === "grant") return `covered by a grant of ${text(entry, "granted_by")}`;
  return text(entry, "rule") ? `the rule “${text(entry, "rule")}” allows it` : "the policy allows it";
}

/** The recipients by name. */
function people(entry: TimelineEntry): string {
  const to = entryContent(entry, "to") as { users?: string[]; teams?: string[] } | undefined;
  const names = [...(to?.users ?? []), ...(to?.teams ?? []).map((team) => `the team ${team}`)];
  return names.length ? ` to ${names.map(escapeInvisible).join(", ")}` : "";
}

function verb(entry: TimelineEntry): string {
  const kind = entryContent(entry, "kind");
  return typeof kind === "string" && kind ? escapeInvisible(kind === "respond" ? "answer" : kind) : "decide";
}

const REFUSALS: Record<string, string> = {
  forbidden: "not allowed to decide it",
  digest_mismatch: "the arguments had changed",
  invalid_decision: "the answer was invalid",
  findings_not_acknowledged: "warnings were not acknowledged",
  expired: "it was too late",
  denied_now: "the policy now denies it",
  already_decided: "it was already decided",
  invalid_request: "the answer was invalid",
};

/** The reason, and the fields of the answer that were wrong. */
function refusal(entry: TimelineEntry): string {
  const code = text(entry, "error");
  const fields = entryContent(entry, "fields");
  const wrong = Array.isArray(fields) ? (fields as string[]).filter(Boolean).map(escapeInvisible) : [];
  return `${REFUSALS[code] ?? code.replaceAll("_", " ")}${wrong.length ? ` (${wrong.join(", ")})` : ""}`;
}

function erasedWhat(entry: TimelineEntry): string {
  const ranges = entryData(entry, "entries");
  const count = Array.isArray(ranges)
    ? (ranges as [number, number][]).reduce((sum, [first, last]) => sum + last - first + 1, 0)
    : 0;
  const why = entryData(entry, "scope") === "retention" ? ", past the retention period" : "";
  return `${countOf(count, "entry", "entries", "entries")}${why}`;
}

function countOf(count: number, one: string, none: string, several = `${one}s`): string {
  if (!count) return none;
  return `${count} ${count === 1 ? one : several}`;
}

/** Timeline steps; consecutive notifications are one step. */
export function groupDeliveries(entries: TimelineEntry[]): (TimelineEntry | TimelineEntry[])[] {
  const steps: (TimelineEntry | TimelineEntry[])[] = [];
  for (const entry of entries) {
    const last = steps.at(-1);
    if (!DELIVERY_KINDS.has(entry.kind)) steps.push(entry);
    else if (Array.isArray(last)) last.push(entry);
    else steps.push([entry]);
  }
  return steps.map((step) => (Array.isArray(step) && step.length === 1 ? (step[0] as TimelineEntry) : step));
}

/** "Interlock notified ada, bob via mail, and people via pager; one message failed" */
export function summarizeDeliveries(entries: TimelineEntry[]): string {
  const recipients = new Map<string, Set<string>>();
  for (const entry of entries.filter(({ kind }) => kind === "delivered")) {
    const channel = escapeInvisible(String(entry.data.channel ?? "a channel"));
    recipients.set(channel, (recipients.get(channel) ?? new Set()).add(nameRecipient(entry) || "people"));
  }
  const recipientVia = [...recipients].map(([channel, names]) => `${shortList([...names])} via ${channel}`);
  const failedCount = entries.filter(({ kind }) => kind === "delivery_parked").length;
  if (!recipientVia.length)
    return `Interlock could not deliver ${failedCount === 1 ? "a message" : `${failedCount} messages`}`;
  const failedNote = failedCount
    ? `; ${failedCount === 1 ? "one message" : `${failedCount} messages`} failed`
    : "";
  return `Interlock notified ${recipientVia.join(", and ")}${failedNote}`;
}

/** The person or the destination, if stored. */
function nameRecipient(entry: TimelineEntry): string {
  const name = entry.content?.person ?? entry.content?.place;
  return typeof name === "string" ? escapeInvisible(name) : "";
}

const MAX_NAMES = 4;

function shortList(names: string[]): string {
  return names.length > MAX_NAMES
    ? `${names.slice(0, MAX_NAMES).join(", ")} and ${names.length - MAX_NAMES} more`
    : names.join(", ");
}
