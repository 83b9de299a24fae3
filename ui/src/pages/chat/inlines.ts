/** Parts of a paragraph. There is nothing among them that could be pressed, and no HTML. */
export type Inline =
  | { kind: "text" | "code"; text: string }
  | { kind: "strong" | "em"; inlines: Inline[] }
  | { kind: "link"; address: string; inlines: Inline[] }
  | { kind: "image"; address: string; text: string };

const MOST_OPEN = 12; // marks inside each other; what goes deeper is text
const LINK =
  /(!?)\[((?:[^[\]\\]|\\.){0,1000})\]\(([^\s<>()]{0,2000}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,500}){0,3})(?:\s"[^"]{0,500}")?\)/y;
const ADDRESS = /<(https?:\/\/[^\s<>]{1,2000})>/iy;
const TICKS = /`+/y;
const MARKS = /\*{1,2}|_{1,2}/y;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const SPECIAL = /[\\`*_[!<]/g;

interface Open {
  mark: string;
  inlines: Inline[];
}

/** Reads from left to right, once: the time that it takes grows with the length alone. */
export function parseInlines(text: string): Inline[] {
  return new Reading(text).all();
}

class Reading {
  private at = 0;
  private open: Open[] = [{ mark: "", inlines: [] }];
  private ticks: Map<number, number[]> | undefined; // made when the first tick is read

  constructor(private readonly text: string) {}

  all(): Inline[] {
    while (this.at < this.text.length) this.step();
    this.giveUp(1);
    return this.top.inlines;
  }

  private get top(): Open {
    return this.open[this.open.length - 1]!;
  }

  private step(): void {
    SPECIAL.lastIndex = this.at;
    const next = SPECIAL.exec(this.text)?.index ?? this.text.length;
    this.put(this.text.slice(this.at, next));
    this.at = next;
    const sign = this.text[next];
    if (sign === undefined) return;
    const isTaken =
      sign === "\\"
        ? this.escaped()
        : sign === "`"
          ? this.code()
          : sign === "<"
            ? this.address()
            : sign === "*" || sign === "_"
              ? this.marked()
              : this.link();
    if (isTaken) return;
    this.put(sign);
    this.at += 1;
  }

  private escaped(): boolean {
    const next = this.text[this.at + 1];
    if (next === undefined || !PUNCTUATION.test(next)) return false;
    this.put(next);
    this.at += 2;
    return true;
  }

  private code(): boolean {
    const ticks = this.match(TICKS)![0];
    const from = this.at + ticks.length;
    const to = this.closing(ticks.length, from);
    this.at = to === undefined ? from : to + ticks.length;
    if (to === undefined) this.put(ticks);
    else this.top.inlines.push({ kind: "code", text: this.text.slice(from, to).trim() });
    return true;
  }

  /** Where as many ticks stand again, and no more of them. What was passed is dropped, so that nothing is read twice. */
  private closing(length: number, from: number): number | undefined {
    this.ticks ??= placesOfTicks(this.text);
    const places = this.ticks.get(length) ?? [];
    while ((places.at(-1) ?? from) < from) places.pop();
    return places.at(-1);
  }

  private address(): boolean {
    const found = this.match(ADDRESS);
    if (!found) return false;
    const [whole, address = ""] = found;
    this.top.inlines.push({ kind: "link", address, inlines: [{ kind: "text", text: address }] });
    this.at += whole.length;
    return true;
  }

  private link(): boolean {
    const found = this.match(LINK);
    if (!found) return false;
    const [whole, isImage, label = "", address = ""] = found;
    this.top.inlines.push(
      isImage
        ? { kind: "image", address, text: label }
        : { kind: "link", address, inlines: parseInlines(label) },
    );
    this.at += whole.length;
    return true;
  }

  private marked(): boolean {
    const mark = this.match(MARKS)![0];
    const before = this.text[this.at - 1] ?? " ";
    const after = this.text[this.at + mark.length] ?? " ";
    this.at += mark.length;
    const isInWord = mark.startsWith("_") && /\w/.test(before) && /\w/.test(after);
    if (!/\s/.test(before) && !isInWord && this.close(mark)) return true;
    if (!/\s/.test(after) && !isInWord && this.open.length < MOST_OPEN) this.open.push({ mark, inlines: [] });
    else this.put(mark);
    return true;
  }

  private close(mark: string): boolean {
    const place = this.open.findLastIndex((each) => each.mark === mark);
    if (place < 1 || (place === this.open.length - 1 && this.top.inlines.length === 0)) return false;
    this.giveUp(place + 1);
    const { inlines } = this.open.pop()!;
    this.top.inlines.push({ kind: mark.length === 2 ? "strong" : "em", inlines });
    return true;
  }

  /** Marks from this one on that nothing closed are text. */
  private giveUp(place: number): void {
    const given = this.open.splice(place);
    for (const { mark, inlines } of given) {
      this.put(mark);
      for (const each of inlines) this.top.inlines.push(each);
    }
  }

  private put(text: string): void {
    const last = this.top.inlines.at(-1);
    if (last?.kind === "text") last.text += text;
    else if (text) this.top.inlines.push({ kind: "text", text });
  }

  private match(form: RegExp): RegExpExecArray | null {
    form.lastIndex = this.at;
    return form.exec(this.text);
  }
}

/** Where ticks stand, by how many there are beside each other; the last place comes first. */
function placesOfTicks(text: string): Map<number, number[]> {
  const places = new Map<number, number[]>();
  for (const { 0: ticks, index } of [...text.matchAll(/`+/g)].reverse()) {
    const others = places.get(ticks.length);
    if (others) others.push(index);
    else places.set(ticks.length, [index]);
  }
  return places;
}
