import { visible } from "../../components/visible";
import type { Entry } from "./sentences";

const TELLING = new Set(["delivered", "delivery_parked", "delivery_again"]);

/** Steps of a story; what was told in one go is one step. */
export function folded(entries: Entry[]): (Entry | Entry[])[] {
  const steps: (Entry | Entry[])[] = [];
  for (const entry of entries) {
    const last = steps.at(-1);
    if (!TELLING.has(entry.kind)) steps.push(entry);
    else if (Array.isArray(last)) last.push(entry);
    else steps.push([entry]);
  }
  return steps.map((step) => (Array.isArray(step) && step.length === 1 ? (step[0] as Entry) : step));
}

/** "Interlock told ada, bob through mail and people through pager; one message was given up" */
export function summary(entries: Entry[]): string {
  const ways = new Map<string, Set<string>>();
  for (const entry of entries.filter(({ kind }) => kind === "delivered")) {
    const channel = visible(String(entry.data.channel ?? "a channel"));
    ways.set(channel, (ways.get(channel) ?? new Set()).add(whom(entry) || "people"));
  }
  const told = [...ways].map(([channel, names]) => `${few([...names])} through ${channel}`);
  const lost = entries.filter(({ kind }) => kind === "delivery_parked").length;
  if (!told.length) return `Interlock gave up ${lost === 1 ? "a message" : `${lost} messages`} to people`;
  const given = lost ? `; ${lost === 1 ? "one message was" : `${lost} messages were`} given up` : "";
  return `Interlock told ${told.join(", and ")}${given}`;
}

/** The person or the place, as far as it is kept. */
export function whom(entry: Entry): string {
  const name = entry.content?.person ?? entry.content?.place;
  return typeof name === "string" ? visible(name) : "";
}

const FEW = 4;

function few(names: string[]): string {
  return names.length > FEW
    ? `${names.slice(0, FEW).join(", ")} and ${names.length - FEW} more`
    : names.join(", ");
}
