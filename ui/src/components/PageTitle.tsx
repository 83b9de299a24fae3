import { createContext, useContext, useEffect, useState, type ReactNode } from "react";

const OpenedContext = createContext("");
const SetOpenedContext = createContext<(opened: string) => void>(() => undefined);
const MAX_LENGTH = 80; // characters that a tab or a bookmark may show

/** Lets pages say in the tab title what is open on them. */
export function PageTitleProvider({ children }: { children: ReactNode }) {
  const [opened, setOpened] = useState("");
  return (
    <SetOpenedContext value={setOpened}>
      <OpenedContext value={opened}>{children}</OpenedContext>
    </SetOpenedContext>
  );
}

/** Puts what is open before the name of the page, as long as the component is shown; "" if there is nothing to say. */
export function usePageTitle(opened: string): void {
  const setOpened = useContext(SetOpenedContext);
  useEffect(() => {
    setOpened(opened);
    return () => setOpened("");
  }, [opened, setOpened]);
}

/** For the frame of the page. */
export function useTabTitle(page: string, pending: number): string {
  return tabTitle(useContext(OpenedContext), page, pending);
}

/** "(3) Refund 42 EUR · Inbox · Interlock". */
export function tabTitle(opened: string, page: string, pending: number): string {
  const characters = Array.from(opened);
  const short = characters.length > MAX_LENGTH ? `${characters.slice(0, MAX_LENGTH - 1).join("")}…` : opened;
  const names = [short, page === short ? "" : page, "Interlock"].filter(Boolean).join(" · ");
  return pending ? `(${pending.toLocaleString()}) ${names}` : names;
}
