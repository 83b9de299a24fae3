import * as messages from "./messages";

const UNITS: Record<string, string> = { s: "second", m: "minute", h: "hour", d: "day", w: "week" };

/** "chat 10m, queue 1d" as the server writes it: "10 minutes in a chat, 1 day in a queue". */
export function describeExpiry(windows: string): string {
  return windows
    .split(", ")
    .map((window) => {
      const [first = "", second] = window.split(" ");
      return second === undefined
        ? inWords(first)
        : `${inWords(second)} ${messages.SETTINGS[first] ?? first}`;
    })
    .join(", ");
}

function inWords(duration: string): string {
  if (!/^(?:\d+[smhdw])+$/.test(duration)) return duration;
  const parts = [...duration.matchAll(/(\d+)([smhdw])/g)].map(
    ([, count, unit]) => `${count} ${UNITS[unit ?? ""]}${count === "1" ? "" : "s"}`,
  );
  return parts.join(" ");
}
