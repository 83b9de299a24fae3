const KEY = "interlock-asked";
const MOST = 300;

/** Whether this browser has not brought it up yet. */
export function isNew(id: string): boolean {
  return !known().includes(id);
}

export function remember(id: string): void {
  try {
    localStorage.setItem(KEY, JSON.stringify([...known().filter((each) => each !== id), id].slice(-MOST)));
  } catch {
    // a browser that keeps nothing asks again, which is better than not at all
  }
}

function known(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.map(String) : [];
  } catch {
    return [];
  }
}
