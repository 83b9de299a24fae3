import { parse } from "../api/json";

const LIKE_JSON = /^-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const DIGITS = 40;

/** What somebody typed as a number with all of its digits; undefined while it is none. */
export function numberFrom(typed: string): number | bigint | undefined {
  const text = typed.trim().replace(/^\+/, "");
  if (!LIKE_JSON.test(text)) return undefined;
  const tidy = text
    .replace(/^(-?)0+(?=\d)/, "$1")
    .replace(/^(-?)\./, "$10.")
    .replace(/\.(?=$|[eE])/, "");
  const found = parse(tidy) as number | bigint;
  if (typeof found === "bigint") return tidy.replace("-", "").length > DIGITS ? undefined : found;
  return Number.isFinite(found) ? found : undefined;
}
