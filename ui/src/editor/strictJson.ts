import { isInteger, isSafeNumber } from "lossless-json";
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
    if (this.place < this.text.length)
      throw new Wrong("There is something after the end of the JSON.", this.place);
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
      if (depth === DEPTH)
        throw new Wrong(`This is nested deeper than ${DEPTH} levels, which the server refuses.`, this.place);
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
      if (this.text[from] !== '"') throw this.unexpected("a name in quotation marks");
      const name = this.string();
      if (names.has(name))
        throw new Wrong(`The name ${JSON.stringify(name)} appears twice in one object.`, from);
      names.add(name);
      this.match(BLANK);
      if (!this.take(":")) throw this.unexpected("a colon");
      members.push([name, this.value(this.spans ? joinPointer(pointer, name) : "", depth)]);
    } while (this.take(","));
    if (!this.take("}")) throw this.unexpected("a comma or }");
    return Object.fromEntries(members);
  }

  private list(pointer: string, depth: number): unknown[] {
    const items: unknown[] = [];
    this.place++;
    this.match(BLANK);
    if (this.take("]")) return items;
    do items.push(this.value(this.spans ? joinPointer(pointer, items.length) : "", depth));
    while (this.take(","));
    if (!this.take("]")) throw this.unexpected("a comma or ]");
    return items;
  }

  private string(): string {
    const from = this.place++;
    let plain = true;
    for (;;) {
      const code = this.text.charCodeAt(this.place);
      if (code === 0x22) break;
      if (Number.isNaN(code)) throw new Wrong("This text has no closing quotation mark.", from);
      if (code < 0x20)
        throw new Wrong("Write line breaks and tabs inside a text as \\n and \\t.", this.place);
      if (code === 0x5c) {
        plain = false;
        if (!this.match(ESCAPE)) throw new Wrong('After \\ comes one of " \\ / b f n r t u.', this.place);
      } else this.place++;
    }
    const raw = this.text.slice(from, ++this.place);
    const text = plain ? raw.slice(1, -1) : (JSON.parse(raw) as string);
    if (text.includes("\0")) throw new Wrong("A text holds a NUL character, which is refused.", from);
    if (/\p{Surrogate}/u.test(text))
      throw new Wrong("A text holds half a character (a lone surrogate).", from);
    return text;
  }

  private number(): number | bigint {
    const from = this.place;
    const digits = this.match(NUMBER);
    if (!digits || /[\w.+-]/.test(this.text[this.place] ?? ""))
      throw new Wrong("This is not a number as JSON writes it.", from);
    const whole = isInteger(digits);
    if (whole && digits.replace("-", "").length > DIGITS)
      throw new Wrong(`This number has more than ${DIGITS} digits.`, from);
    if (!Number.isFinite(Number(digits)) && !whole) throw new Wrong("This number is too large.", from);
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
        throw new Wrong("NaN and Infinity are no JSON numbers.", from);
      case "":
        throw this.unexpected("a value");
      default:
        throw new Wrong("A text needs quotation marks around it.", from);
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
    return new Wrong(`Here should be ${wanted}${found ? "" : ", but the text ends"}.`, this.place);
  }
}

/** "Line 3: …", as an editor counts. */
export function describeFlaw(text: string, { at, message }: JsonFlaw): string {
  return `Line ${text.slice(0, at).split("\n").length}: ${message}`;
}
