import type { Flaw } from "./strictJson";

/** "Line 3: …", as an editor counts. */
export function lineOf(text: string, { at, message }: Flaw): string {
  return `Line ${text.slice(0, at).split("\n").length}: ${message}`;
}
