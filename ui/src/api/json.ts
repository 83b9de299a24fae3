import { isInteger, isSafeNumber, parse as parseLossless, stringify } from "lossless-json";

/** Parses JSON without rounding: integers outside the safe range become bigints. */
export function parseJson(text: string): unknown {
  if (!LONG_NUMBER.test(text)) return JSON.parse(text); // much faster, and equivalent without long numbers
  return parseLossless(text, undefined, { parseNumber: parseExactNumber });
}

/** The inverse; bigints are written as integers. */
export function stringifyJson(value: unknown, indent?: number): string {
  return stringify(value, undefined, indent) ?? "null";
}

const LONG_NUMBER = /(?:^|[:,[\s])-?\d{16}/; // may also match inside a string, which only costs time

function parseExactNumber(text: string): number | bigint {
  return isInteger(text) && !isSafeNumber(text) ? BigInt(text) : Number(text);
}
