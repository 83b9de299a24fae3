import type { Schemas } from "../../api/client";
import { visible } from "../../components/visible";

const TELLING = new Set(["delivered", "delivery_parked", "delivery_again"]);

export type TimelineEntry = Schemas["TimelineEntryJson"];
type Said = (entry: TimelineEntry) => string;

/** What happened, in a sentence without the actor: "approved it", after "bob". */
const SAYS: Record<string, Said> = {
  proposed: (e) => `asked to run ${tool(e)}${rule(e)}`,
  allowed: (e) => `ran ${tool(e)} without asking: ${allowedBy(e)}`,
  denied: (e) => `wanted to run ${tool(e)} and was denied${rule(e)}`,
  voted: (e) => `approved it${stage(e)}; more people have to agree`,
  approved: (e) =>
    entryData(e, "by") === "expiry" ? "approved it, as the rule says when nobody answers" : "approved it",
  edited: (e) => `changed ${many(Number(entryContent(e, "changed") ?? 0), "argument", "the arguments")}`,
  responded: () => "answered instead of letting it run",
  rejected: () => "rejected it",
  undone: () => "took the rejection back",
  delegated: (e) => `passed it on${people(e)}`,
  reviewer_removed: (e) => `ended votes and delegations of ${text(e, "user")}`,
  decision_refused: (e) => `tried to ${verb(e)} it and was refused: ${refusal(e)}`,
  cancelled: () => "withdrew it",
  claimed: () => "took it on",
  released: () => "gave it back",
  commented: () => "remarked",
  asked: () => "asked the agent",
  replied: () => "replied",
  reminded: () => "reminded those who may decide",
  escalated: (e) => `asked more people to decide${people(e)}`,
  expired: () => "let it expire: nobody decided in time",
  lapsed: () => "let the approval lapse: it was not started in time",
  started: (e) =>
    Number(entryData(e, "fence")) > 1 ? `started it again (start ${entryData(e, "fence")})` : "started it",
  succeeded: () => "ran it to its end: it succeeded",
  failed: () => "ran it to its end: it failed",
  lost: () => "lost sight of the run: nobody knows how it ended",
  finished_late: () => "reported an end too late; it was not taken",
  resolved: (e) => `looked, and says that it ${text(e, "status") || "ended"}`,
  user_changed: (e) => `made ${text(e, "user")} ${a(text(e, "role"))}`,
  user_removed: (e) => `removed ${text(e, "user")}`,
  away_changed: (e) =>
    entryData(e, "until") ? `set ${text(e, "user")} as away` : `set ${text(e, "user")} as back`,
  key_created: (e) => `made a key for ${a(text(e, "role"))}`,
  key_rotated: (e) => `made a key in place of ${text(e, "replaces")}`,
  key_revoked: () => "revoked a key",
  link_created: (e) => `made a sign-in link for ${text(e, "user") || a(text(e, "role"))}`,
  code_created: (e) => `mailed a sign-in code to ${text(e, "user")}`,
  link_used: () => "used a sign-in link",
  password_changed: (e) => `set the password of ${text(e, "user")}`,
  signed_in: (e) => `signed in by ${text(e, "via")}`,
  signed_out: (e) => (text(e, "user") ? `signed ${text(e, "user")} out everywhere` : "signed out"),
  sign_in_failed: () => "noted a sign-in that failed",
  thread_said: () => "said something in a chat",
  thread_replied: () => "replied in a chat",
  thread_asked: (e) => `asked in a chat to run ${tool(e)}`,
  thread_decided: (e) => `heard in a chat that a call was ${text(e, "status")}`,
  thread_delegated: (e) => `gave work to another agent${text(e, "agent") && `, ${text(e, "agent")}`}`,
  thread_resulted: (e) => `got the result of ${tool(e)} in a chat`,
  thread_confirming: () => "asked in words whether to go on",
  thread_confirmed: (e) => `was answered${text(e, "answer") && `: ${text(e, "answer")}`}`,
  thread_failed: () => "failed in a chat",
  thread_stopped: () => "stopped a chat",
  thread_retried: () => "tried again in a chat",
  thread_resumed: () => "went on with a chat",
  thread_ended: () => "came to the end of a turn in a chat",
  thread_erased: () => "erased what was said in a chat",
  run_opened: () => "began a run",
  run_resumed: () => "went on with a run",
  run_closed: () => "ended a run",
  granted: (e) => `let ${tool(e)} run without asking, for a while`,
  grant_revoked: (e) => `revoked the grant for ${tool(e)}`,
  delivered: (e) => delivered(e),
  delivery_parked: (e) => `gave up telling ${told(e)}${because(e, "error")}`,
  delivery_again: (e) => `had a message to ${told(e)} sent again`,
  identity_bound: (e) => `said who ${text(e, "user")} is in ${text(e, "channel")}`,
  identity_unbound: (e) => `took back who ${text(e, "user") || "somebody"} is in ${text(e, "channel")}`,
  channel_off: (e) => `switched the channel ${text(e, "channel")} off${because(e, "why")}`,
  channel_on: (e) => `switched the channel ${text(e, "channel")} on`,
  policy_changed: (e) => `put a policy in force${text(e, "version") && `, version ${text(e, "version")}`}`,
  agent_changed: (e) => `changed the settings of the agent ${text(e, "agent")}`,
  frozen: (e) => `froze ${scope(e)}${because(e, "reason")}`,
  unfrozen: (e) => `released ${scope(e)}${because(e, "reason")}`,
  deferred: () => "moved its deadlines by the time for which it was frozen",
  tool_pinned: (e) => `pinned the tool ${tool(e)} as ${text(e, "effect")}`,
  tool_unpinned: (e) => `took back the pin of the tool ${tool(e)}`,
  erased: (e) => `erased the content of ${erasedWhat(e)}`,
};

export const EVENT_KINDS = Object.keys(SAYS);

/** "bob approved it". A kind that is not known yet is told by its name. */
export function describeEntry(entry: TimelineEntry): string {
  const says = SAYS[entry.kind];
  return `${nameActor(entry.actor)} ${says ? says(entry) : visible(entry.kind.replaceAll("_", " "))}`;
}

export function nameActor(name: string): string {
  if (name === "interlock") return "Interlock";
  if (name === "policy") return "The policy";
  if (name === "agent") return "The agent";
  const [kind, ...rest] = name.split(":");
  if (kind === "agent") return `The agent ${visible(rest.join(":"))}`;
  if (kind === "runner") return "The runner";
  return visible(name);
}

/** Content that was there and is not any more. */
export const wasErased = (entry: TimelineEntry): boolean => !entry.content && Boolean(entry.digest);

export const entryData = (entry: TimelineEntry, name: string): unknown => entry.data[name];
export const entryContent = (entry: TimelineEntry, name: string): unknown => entry.content?.[name];

function text(entry: TimelineEntry, name: string): string {
  const found = entryData(entry, name);
  return typeof found === "string" || typeof found === "number" ? visible(String(found)) : "";
}

/** "ada through mail" */
const told = (entry: TimelineEntry): string =>
  `${nameRecipient(entry) || "people"} through ${text(entry, "channel")}`;

function delivered(entry: TimelineEntry): string {
  if (entryData(entry, "what") === "reminded") return `reminded ${told(entry)}`;
  if (entryData(entry, "what") === "changed") return `told ${told(entry)} what has changed`;
  if (entryData(entry, "reason") === "woken")
    return `woke the workflow that waits, through ${text(entry, "channel")}`;
  return `told ${told(entry)}${entryData(entry, "reason") === "expired" ? " that time ran out" : ""}`;
}

function because(entry: TimelineEntry, name: string): string {
  const why = entryContent(entry, name);
  return typeof why === "string" && why ? `: ${visible(why)}` : "";
}

const scope = (entry: TimelineEntry): string =>
  text(entry, "name") ? `the ${text(entry, "scope")} ${text(entry, "name")}` : "the workspace";

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

/** To whom, in names. */
function people(entry: TimelineEntry): string {
  const to = entryContent(entry, "to") as { users?: string[]; teams?: string[] } | undefined;
  const names = [...(to?.users ?? []), ...(to?.teams ?? []).map((team) => `the team ${team}`)];
  return names.length ? ` to ${names.map(visible).join(", ")}` : "";
}

function verb(entry: TimelineEntry): string {
  const kind = entryContent(entry, "kind");
  return typeof kind === "string" ? visible(kind === "respond" ? "answer" : kind) : "decide";
}

const REFUSALS: Record<string, string> = {
  forbidden: "not theirs to decide",
  digest_mismatch: "they had seen other arguments",
  invalid_decision: "the answer did not fit",
  findings_not_acknowledged: "warnings were not acknowledged",
  expired: "it was too late",
  denied_now: "the policy denies it by now",
};

function refusal(entry: TimelineEntry): string {
  const code = text(entry, "error");
  return REFUSALS[code] ?? code.replaceAll("_", " ");
}

function erasedWhat(entry: TimelineEntry): string {
  const ranges = entryData(entry, "entries");
  const count = Array.isArray(ranges)
    ? (ranges as [number, number][]).reduce((sum, [first, last]) => sum + last - first + 1, 0)
    : 0;
  const why = entryData(entry, "scope") === "retention" ? ", as old as the retention says" : "";
  return `${many(count, "entry", "entries", "entries")}${why}`;
}

function many(count: number, one: string, none: string, several = `${one}s`): string {
  if (!count) return none;
  return `${count} ${count === 1 ? one : several}`;
}

/** Steps of a story; what was told in one go is one step. */
export function groupDeliveries(entries: TimelineEntry[]): (TimelineEntry | TimelineEntry[])[] {
  const steps: (TimelineEntry | TimelineEntry[])[] = [];
  for (const entry of entries) {
    const last = steps.at(-1);
    if (!TELLING.has(entry.kind)) steps.push(entry);
    else if (Array.isArray(last)) last.push(entry);
    else steps.push([entry]);
  }
  return steps.map((step) => (Array.isArray(step) && step.length === 1 ? (step[0] as TimelineEntry) : step));
}

/** "Interlock told ada, bob through mail and people through pager; one message was given up" */
export function summarizeDeliveries(entries: TimelineEntry[]): string {
  const ways = new Map<string, Set<string>>();
  for (const entry of entries.filter(({ kind }) => kind === "delivered")) {
    const channel = visible(String(entry.data.channel ?? "a channel"));
    ways.set(channel, (ways.get(channel) ?? new Set()).add(nameRecipient(entry) || "people"));
  }
  const told = [...ways].map(([channel, names]) => `${few([...names])} through ${channel}`);
  const lost = entries.filter(({ kind }) => kind === "delivery_parked").length;
  if (!told.length) return `Interlock gave up ${lost === 1 ? "a message" : `${lost} messages`} to people`;
  const given = lost ? `; ${lost === 1 ? "one message was" : `${lost} messages were`} given up` : "";
  return `Interlock told ${told.join(", and ")}${given}`;
}

/** The person or the place, as far as it is kept. */
function nameRecipient(entry: TimelineEntry): string {
  const name = entry.content?.person ?? entry.content?.place;
  return typeof name === "string" ? visible(name) : "";
}

const FEW = 4;

function few(names: string[]): string {
  return names.length > FEW
    ? `${names.slice(0, FEW).join(", ")} and ${names.length - FEW} more`
    : names.join(", ");
}
