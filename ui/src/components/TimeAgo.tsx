import { Text, type TextProps } from "@mantine/core";
import { useEffect, useState } from "react";

const UNITS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** "3 min", "2 h", "now": one unit is enough to go by. */
export function formatSpan(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [size, name] = UNITS.find(([size]) => whole >= size) ?? [1, "s"];
  return `${Math.floor(whole / size)} ${name}`;
}

/** Rendered again every second while `on`. */
export function useTick(on = true): number {
  const [now, setNow] = useState(() => performance.now());
  useEffect(() => {
    if (!on) return;
    const timer = setInterval(() => setNow(performance.now()), 1_000);
    return () => clearInterval(timer);
  }, [on]);
  return now;
}

/** How long ago, with the exact time on a closer look. */
export function TimeAgo({ at, ...props }: { at: string } & TextProps) {
  useTick();
  // eslint-disable-next-line react-hooks/purity -- rendered again every second, to say how late it is
  const seconds = (Date.now() - Date.parse(at)) / 1_000;
  return (
    <Text component="time" dateTime={at} title={new Date(at).toLocaleString()} inherit {...props}>
      {seconds < 1 ? "now" : `${formatSpan(seconds)} ago`}
    </Text>
  );
}
