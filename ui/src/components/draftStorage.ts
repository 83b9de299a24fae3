/** What was typed and not sent. "sessionStorage" is that of this tab. */
type DraftStorage = "sessionStorage" | "localStorage";

export const DRAFT_PREFIX = "draft:";
const MAX_DRAFTS = 20; // of these names, so that the storage does not fill up

const changed = new Set<string>(); // by this page, the latest last

/** Null if there is none, or if it cannot be read. */
export function loadDraft(place: string, storage: DraftStorage = "sessionStorage"): unknown {
  try {
    return JSON.parse(window[storage].getItem(place) ?? "null");
  } catch {
    return null;
  }
}

/** Null removes it. Without storage, or room in it, a draft lives as long as the page. */
export function storeDraft(place: string, draft: unknown, storage: DraftStorage = "sessionStorage"): void {
  const isInTab = storage === "sessionStorage";
  try {
    if (draft === null) return window[storage].removeItem(place);
    if (isInTab) prune(place);
    try {
      window[storage].setItem(place, JSON.stringify(draft));
    } catch {
      window[storage].removeItem(place); // no draft is better than an older one that looks like the last
    }
  } catch {
    // there is nothing else to do
  }
}

/** Makes room: drafts from before a reload go first, then those that this page changed longest ago. */
function prune(kept: string): void {
  changed.delete(kept);
  const stored = Object.keys(sessionStorage).filter((name) => name.startsWith(DRAFT_PREFIX) && name !== kept);
  const order = [...changed];
  const oldest = stored.sort((one, other) => order.indexOf(one) - order.indexOf(other));
  for (const name of oldest.slice(0, Math.max(0, stored.length + 1 - MAX_DRAFTS)))
    sessionStorage.removeItem(name);
  changed.add(kept);
}
