const AROUND = 60; // characters of what stayed
const LONGEST = 400;

/** A piece of a text, or how many characters are left out there. */
export type Part = string | number;

/** Two texts without most of what they share, so that a word that changed in a long text is seen. */
export function difference(before: string, after: string): { gone: Part[]; come: Part[] } {
  const [a, b] = [[...before], [...after]];
  const shorter = Math.min(a.length, b.length);
  let head = 0;
  while (head < shorter && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < shorter - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const from = head > AROUND * 2 ? head - AROUND : 0;
  const rest = tail > AROUND * 2 ? tail - AROUND : 0;
  const cut = (text: string[]) => [from, ...ends(text.slice(from, text.length - rest)), rest].filter(Boolean);
  return { gone: cut(a), come: cut(b) };
}

/** The two ends of a text that is too long to be read. */
export function shortened(text: string): Part[] {
  return ends([...text]);
}

function ends(text: string[]): Part[] {
  if (text.length <= LONGEST) return [text.join("")];
  const half = LONGEST / 2;
  return [text.slice(0, half).join(""), text.length - LONGEST, text.slice(-half).join("")];
}
