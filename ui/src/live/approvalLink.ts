/** The link of a message that this page was opened by. Its token is taken out of the address and kept nowhere else. */
interface Opened {
  id: string;
  token: string;
  /** Made for whoever is signed in, and not used yet: their decision is made through it. */
  counts: boolean;
}

const opened: Opened | null = taken();

/** The token for one approval, or "". */
export function readLinkToken(id: string): string {
  return opened?.id === id ? opened.token : "";
}

export function setLinkCounts(counts: boolean): void {
  if (opened) opened.counts = counts;
}

/** Goes with a decision. */
export function linkHeaders(id: string): Record<string, string> | undefined {
  return opened?.id === id && opened.counts ? { "interlock-link": opened.token } : undefined;
}

/** The approval that an address is about, or "". */
export function approvalIdAt(path: string): string {
  return /^\/a\/([^/]+)\/?$/.exec(path)?.[1] ?? "";
}

function taken(): Opened | null {
  const { pathname, search, hash } = location;
  const asked = new URLSearchParams(search);
  const [id, token] = [approvalIdAt(pathname), asked.get("t") ?? ""];
  if (!id || !token) return null;
  asked.delete("t");
  const left = asked.toString();
  history.replaceState(history.state, "", pathname + (left ? `?${left}` : "") + hash);
  return { id, token, counts: false };
}
