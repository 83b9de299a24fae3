import { createContext, useCallback, useContext, useEffect, useState, type ReactNode } from "react";
import * as messages from "./messages";

const OpenedContext = createContext("");
const SetOpenedContext = createContext<(level: Level, opened: string) => void>(() => undefined);
const MAX_LENGTH = 80; // characters that a tab or a bookmark may show

/** What is open within a page says more than the page. */
type Level = "page" | "within";

/** Lets pages say in the tab title what is open on them. */
export function PageTitleProvider({ children }: { children: ReactNode }) {
  const [opened, setOpened] = useState({ page: "", within: "" });
  const set = useCallback(
    (level: Level, name: string) => setOpened((now) => ({ ...now, [level]: name })),
    [],
  );
  return (
    <SetOpenedContext value={set}>
      <OpenedContext value={opened.within || opened.page}>{children}</OpenedContext>
    </SetOpenedContext>
  );
}

/** Puts what is open before the name of the page, as long as the component is shown; "" if there is nothing to say. */
export function usePageTitle(opened: string, level: Level = "within"): void {
  const setOpened = useContext(SetOpenedContext);
  useEffect(() => {
    setOpened(level, opened);
    return () => setOpened(level, "");
  }, [opened, level, setOpened]);
}

/** For the frame of the page. */
export function useTabTitle(page: string, pending: number): string {
  return tabTitle(useContext(OpenedContext), page, pending);
}

/** "(3) Refund 42 EUR · Inbox · Interlock". */
export function tabTitle(opened: string, page: string, pending: number): string {
  const characters = Array.from(opened);
  const short = characters.length > MAX_LENGTH ? `${characters.slice(0, MAX_LENGTH - 1).join("")}…` : opened;
  const names = [short, page === short ? "" : page, messages.interlock].filter(Boolean).join(" · ");
  return pending ? `(${pending.toLocaleString("en")}) ${names}` : names;
}
