/** The filters, all of them in the URL, so that a list can be shared and reloaded. */
export interface InboxFilters {
  status: "pending" | "all";
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

const PRIORITIES: readonly string[] = ["low", "medium", "high"];

export function readFilters(search: URLSearchParams): InboxFilters {
  const text = (name: TextFilterName) => search.get(name)?.trim() ?? "";
  const priority = search.get("priority") ?? "";
  return {
    status: search.get("status") === "all" ? "all" : "pending",
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

/** As the API names them. */
export function toQuery(filters: InboxFilters, page: { cursor?: string; limit: number; status?: "" }) {
  const { status, thread, ...rest } = filters;
  const wanted = status === "all" ? "" : status;
  return {
    ...rest,
    thread_id: thread,
    status: page.status ?? wanted,
    cursor: page.cursor ?? "",
    limit: page.limit,
  };
}

/** The active filters with their labels. */
export function activeFilters(filters: InboxFilters): [name: FilterName, text: string][] {
  const words = Object.entries(filters).filter(([name, value]) => name !== "status" && Boolean(value));
  return words.map(([name, value]) => [
    name as FilterName,
    value === true ? "waiting for me" : `${label(name)}: ${value}`,
  ]);
}

const label = (name: string) => (name === "q" ? "search" : name);
