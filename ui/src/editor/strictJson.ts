import { isInteger, isSafeNumber } from "lossless-json";
import * as messages from "./messages";
import { joinPointer, type JsonObject } from "./values";

/** A place in a text, and what is wrong there in words for people. */
export interface JsonFlaw {
  message: string;
  at: number;
}
type JsonReading = { value: unknown; flaw?: undefined } | { flaw: JsonFlaw };
type TextSpan = [from: number, to: number];

const DEPTH = 63; // the server takes 64 with what is around the arguments
const DIGITS = 40;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /[A-Za-z_$][\w$]*|-Infinity/y;
const BLANK = /[ \t\n\r]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** JSON as strictly as the server reads it: no name twice, not too deep, no digit lost, no half characters. */
export function readStrictJson(text: string, spans?: Map<string, TextSpan>): JsonReading {
  try {
    return { value: new Reader(text, spans).whole() };
  } catch (error) {
    if (error instanceof Wrong) return { flaw: { message: error.message, at: error.at } };
    throw error;
  }
}

/** Where every value of the text stands, by its pointer. */
export function locateValues(text: string): Map<string, TextSpan> {
  const spans = new Map<string, TextSpan>();
  readStrictJson(text, spans);
  return spans;
}

/** The place of a value; of the nearest around it if it is not there. */
export function findSpan(spans: ReadonlyMap<string, TextSpan>, pointer: string): TextSpan {
  for (let place = pointer; ; place = place.slice(0, place.lastIndexOf("/"))) {
    const found = spans.get(place);
    if (found) return found;
    if (!place.includes("/")) return [0, 0];
  }
}

class Wrong extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message);
  }
}

class Reader {
  private place = 0;

  constructor(
    private readonly text: string,
    private readonly spans?: Map<string, TextSpan>,
  ) {}

  whole(): unknown {
    const value = this.value("", 0);
    if (this.place < this.text.length) throw new Wrong(messages.jsonHasMore, this.place);
    return value;
  }

  private value(pointer: string, depth: number): unknown {
    this.match(BLANK);
    const from = this.place;
    const value = this.bare(pointer, depth);
    this.spans?.set(pointer, [from, this.place]);
    this.match(BLANK);
    return value;
  }

  private bare(pointer: string, depth: number): unknown {
    const next = this.text[this.place];
    if (next === "{" || next === "[") {
      if (depth === DEPTH) throw new Wrong(messages.nestedTooDeep(DEPTH), this.place);
      return next === "{" ? this.object(pointer, depth + 1) : this.list(pointer, depth + 1);
    }
    if (next === '"') return this.string();
    if (next === "-" || (next !== undefined && next >= "0" && next <= "9")) return this.number();
    return this.word();
  }

  private object(pointer: string, depth: number): JsonObject {
    const members: [string, unknown][] = [];
    const names = new Set<string>();
    this.place++;
    this.match(BLANK);
    if (this.take("}")) return {};
    do {
      this.match(BLANK);
      const from = this.place;
      if (this.text[from] !== '"') throw this.unexpected(messages.nameInQuotationMarks);
      const name = this.string();
      if (names.has(name)) throw new Wrong(messages.nameAppearsTwice(JSON.stringify(name)), from);
      names.add(name);
      this.match(BLANK);
      if (!this.take(":")) throw this.unexpected(messages.aColon);
      members.push([name, this.value(this.spans ? joinPointer(pointer, name) : "", depth)]);
    } while (this.take(","));
    if (!this.take("}")) throw this.unexpected(messages.commaOrBrace);
    return Object.fromEntries(members);
  }

  private list(pointer: string, depth: number): unknown[] {
    const items: unknown[] = [];
    this.place++;
    this.match(BLANK);
    if (this.take("]")) return items;
    do items.push(this.value(this.spans ? joinPointer(pointer, items.length) : "", depth));
    while (this.take(","));
    if (!this.take("]")) throw this.unexpected(messages.commaOrBracket);
    return items;
  }

  private string(): string {
    const from = this.place++;
    let plain = true;
    for (;;) {
      const code = this.text.charCodeAt(this.place);
      if (code === 0x22) break;
      if (Number.isNaN(code)) throw new Wrong(messages.noClosingQuote, from);
      if (code < 0x20) throw new Wrong(messages.escapeLineBreaks, this.place);
      if (code === 0x5c) {
        plain = false;
        if (!this.match(ESCAPE)) throw new Wrong(messages.badEscape, this.place);
      } else this.place++;
    }
    const raw = this.text.slice(from, ++this.place);
    const text = plain ? raw.slice(1, -1) : (JSON.parse(raw) as string);
    if (text.includes("\0")) throw new Wrong(messages.textHoldsNul, from);
    if (/\p{Surrogate}/u.test(text)) throw new Wrong(messages.textHoldsLoneSurrogate, from);
    return text;
  }

  private number(): number | bigint {
    const from = this.place;
    const digits = this.match(NUMBER);
    if (!digits || /[\w.+-]/.test(this.text[this.place] ?? ""))
      throw new Wrong(messages.notAJsonNumber, from);
    const whole = isInteger(digits);
    if (whole && digits.replace("-", "").length > DIGITS)
      throw new Wrong(messages.tooManyDigits(DIGITS), from);
    if (!Number.isFinite(Number(digits)) && !whole) throw new Wrong(messages.numberTooLarge, from);
    return whole && !isSafeNumber(digits) ? BigInt(digits) : Number(digits);
  }

  private word(): unknown {
    const from = this.place;
    switch (this.match(WORD)) {
      case "true":
        return true;
      case "false":
        return false;
      case "null":
        return null;
      case "NaN":
      case "Infinity":
        throw new Wrong(messages.noJsonNumber, from);
      case "":
        throw this.unexpected(messages.aValue);
      default:
        throw new Wrong(messages.textNeedsQuotes, from);
    }
  }

  private take(sign: string): boolean {
    if (this.text[this.place] !== sign) return false;
    this.place++;
    return true;
  }

  private match(pattern: RegExp): string {
    pattern.lastIndex = this.place;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.place += found.length;
    return found;
  }

  private unexpected(wanted: string): Wrong {
    const found = this.text[this.place];
    return new Wrong(messages.missingHere(wanted, found), this.place);
  }
}

/** "Line 3: …", as an editor counts. */
export function describeFlaw(text: string, { at, message }: JsonFlaw): string {
  return messages.lineWithMessage(text.slice(0, at).split("\n").length, message);
}
