/** What was typed and not sent. "sessionStorage" is that of this tab. */
type DraftStorage = "sessionStorage" | "localStorage";

export const DRAFT_PREFIX = "draft:";
const MAX_DRAFTS = 20; // of these names, so that the storage does not fill up
const OWNER = "drafts-of";

const changed = new Set<string>(); // by this page, the latest last
let pageUser = "";
let isClosed = false;

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
  if (isInTab && isClosed) return;
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

/** Called with the user of this tab, before anything of them is shown: drafts of somebody else are removed. */
export function openDrafts(user: string): void {
  pageUser ||= user;
  isClosed = pageUser !== user; // the page is about to reload: what its forms still hold is not the new user's
  try {
    if ((sessionStorage.getItem(OWNER) ?? user) !== user) removeDrafts();
    sessionStorage.setItem(OWNER, user);
  } catch {
    // nothing is stored then
  }
}

/** Removes the drafts of this tab; what open forms store while the page goes is not kept either. */
export function closeDrafts(): void {
  isClosed = true;
  try {
    removeDrafts();
  } catch {
    // nothing is stored then
  }
}

function removeDrafts(): void {
  for (const name of Object.keys(sessionStorage))
    if (/^(draft:|interlock-draft-)/.test(name)) sessionStorage.removeItem(name);
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
