/** Marks of an axis from 0 to above the highest value: few, round, whole where only whole numbers make sense. */
export function ticks(highest: number, whole: "whole" | "any" = "whole"): number[] {
  if (highest <= 0) return [0, 1];
  const rough = highest / 4;
  const size = 10 ** Math.floor(Math.log10(rough));
  const round = [1, 2, 5, 10].map((each) => each * size).find((each) => each >= rough) ?? rough;
  const step = whole === "whole" ? Math.max(1, Math.ceil(round)) : round;
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, place) => place * step);
}

/** A few of many labels, the first and the last among them, so that they do not run into each other. */
export function few<T>(labels: T[], most = 4): { label: T; at: number }[] {
  const last = labels.length - 1;
  const places =
    labels.length <= most ? [...labels.keys()] : [...Array(most).keys()].map((n) => (n * last) / (most - 1));
  return [...new Set(places.map(Math.round))].map((place) => ({
    label: labels[place] as T,
    at: last > 0 ? place / last : 0.5,
  }));
}

/** Points of a line; where there is no value the line goes on from the next one. `steps` keeps a value until the next. */
export function path(values: (number | null)[], top: number, how: "steps" | "straight"): string {
  const last = Math.max(1, values.length - 1);
  let drawn = "";
  values.forEach((value, place) => {
    if (value === null) return;
    const [x, y] = [(place / last) * 100, 100 - (value / top) * 100];
    if (!drawn) drawn = `M${x} ${y}`;
    else drawn += how === "steps" ? `H${x}V${y}` : `L${x} ${y}`;
  });
  return drawn;
}
