import { Text, type TextProps } from "@mantine/core";
import { useEffect, useState } from "react";
import * as messages from "./messages";

const UNITS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** "3 min", "2 h": one unit is precise enough. */
export function formatSpan(seconds: number): string {
  const rounded = Math.max(0, Math.floor(seconds));
  const [size, name] = UNITS.find(([size]) => rounded >= size) ?? [1, "s"];
  return `${Math.floor(rounded / size)} ${name}`;
}

/** "Nov 19, 2026, 2:21 PM", as the browser's language writes it. */
export function formatDateTime(at: string | number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** Rerenders every second while enabled. */
export function useTick(isEnabled = true): number {
  const [now, setNow] = useState(() => performance.now());
  useEffect(() => {
    if (!isEnabled) return;
    const timer = setInterval(() => setNow(performance.now()), 1_000);
    return () => clearInterval(timer);
  }, [isEnabled]);
  return now;
}

/** A relative time, with the exact time as its tooltip. */
export function TimeAgo({ at, ...props }: { at: string } & TextProps) {
  useTick();
  // eslint-disable-next-line react-hooks/purity -- rendered again every second, to say how late it is
  const seconds = (Date.now() - Date.parse(at)) / 1_000;
  return (
    <Text component="time" dateTime={at} title={formatDateTime(at)} inherit {...props}>
      {messages.timeAgo(seconds, formatSpan(seconds))}
    </Text>
  );
}
