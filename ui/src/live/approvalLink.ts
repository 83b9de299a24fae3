/** The notification link that opened this page. Its token is removed from the URL and stored nowhere else. */
interface OpenedLink {
  id: string;
  token: string;
  /** The link belongs to the signed-in user and is not used yet: it is sent with their decision. */
  isUsable: boolean;
}

const opened: OpenedLink | null = takeTokenFromUrl();

/** The token for one approval, or "". */
export function readLinkToken(id: string): string {
  return opened?.id === id ? opened.token : "";
}

export function setLinkCounts(isUsable: boolean): void {
  if (opened) opened.isUsable = isUsable;
}

/** The headers of a decision. */
export function linkHeaders(id: string): Record<string, string> | undefined {
  return opened?.id === id && opened.isUsable ? { "interlock-link": opened.token } : undefined;
}

/** The approval id in a path, or "". */
export function approvalIdAt(path: string): string {
  return /^\/a\/([^/]+)\/?$/.exec(path)?.[1] ?? "";
}

function takeTokenFromUrl(): OpenedLink | null {
  const { pathname, search, hash } = location;
  const parameters = new URLSearchParams(search);
  const [id, token] = [approvalIdAt(pathname), parameters.get("t") ?? ""];
  if (!id || !token) return null;
  parameters.delete("t");
  const remaining = parameters.toString();
  history.replaceState(history.state, "", pathname + (remaining ? `?${remaining}` : "") + hash);
  return { id, token, isUsable: false };
}
