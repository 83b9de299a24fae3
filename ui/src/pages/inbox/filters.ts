/** The filters, all of them in the URL, so that a list can be shared and reloaded. */
export interface InboxFilters {
  /** "decided": by the user, in any way. */
  status: "pending" | "all" | "decided";
  mine: boolean;
  q: string;
  tool: string;
  agent: string;
  user: string;
  team: string;
  priority: Priority;
  thread: string;
}
export type Priority = "" | "low" | "medium" | "high";
export type TextFilterName = "q" | "tool" | "agent" | "user" | "team" | "thread";
type FilterName = Exclude<keyof InboxFilters, "status">;

/** What the tabs above the list select. */
export type InboxView = "mine" | "everyone" | "decided" | "all";

const PRIORITIES: readonly string[] = ["low", "medium", "high"];
const STATUSES: readonly string[] = ["all", "decided"];
const DECIDED_STATUSES = "approved,running,rejected,responded,succeeded,failed,unknown";

export function readFilters(search: URLSearchParams): InboxFilters {
  const text = (name: TextFilterName) => search.get(name)?.trim() ?? "";
  const priority = search.get("priority") ?? "";
  const status = search.get("status") ?? "";
  return {
    status: STATUSES.includes(status) ? (status as InboxFilters["status"]) : "pending",
    mine: search.get("mine") === "1",
    q: text("q"),
    tool: text("tool"),
    agent: text("agent"),
    user: text("user"),
    team: text("team"),
    priority: PRIORITIES.includes(priority) ? (priority as Priority) : "",
    thread: text("thread"),
  };
}

/** The URL with some filters changed; default values are omitted, other parameters are kept. */
export function writeFilters(search: URLSearchParams, changed: Partial<InboxFilters>): URLSearchParams {
  const next = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changed)) {
    const text = value === true ? "1" : value === "pending" || !value ? "" : String(value);
    if (text) next.set(name, text);
    else next.delete(name);
  }
  return next;
}

export function viewOf({ status, mine }: InboxFilters): InboxView {
  if (status === "pending") return mine ? "mine" : "everyone";
  return status;
}

export const VIEW_FILTERS: Record<InboxView, Pick<InboxFilters, "status" | "mine">> = {
  mine: { status: "pending", mine: true },
  everyone: { status: "pending", mine: false },
  decided: { status: "decided", mine: false },
  all: { status: "all", mine: false },
};

/** As the API names them; `me` is the user. */
export function toQuery(
  filters: InboxFilters,
  page: { cursor?: string; limit: number; status?: ""; me?: string },
) {
  const { status, thread, ...rest } = filters;
  const isMine = status === "decided";
  const wanted = { pending: "pending", all: "", decided: DECIDED_STATUSES }[status];
  return {
    ...rest,
    user: rest.user || (isMine ? (page.me ?? "") : ""),
    thread_id: thread,
    status: page.status ?? wanted,
    cursor: page.cursor ?? "",
    limit: page.limit,
  };
}

/** The active filters with their labels. */
export function activeFilters(filters: InboxFilters): [name: FilterName, text: string][] {
  const words = Object.entries(filters).filter(
    ([name, value]) => name !== "status" && name !== "mine" && Boolean(value),
  );
  return words.map(([name, value]) => [name as FilterName, `${label(name)}: ${String(value)}`]);
}

const label = (name: string) => (name === "q" ? "search" : name);
