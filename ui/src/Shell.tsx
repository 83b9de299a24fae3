import { Badge, Burger, Button, Stack, Text, Title, VisuallyHidden } from "@mantine/core";
import { useDisclosure, useDocumentTitle } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useRef, useState, type ReactNode } from "react";
import { Link, Redirect, useLocation } from "wouter";
import { ApiError, callApi, setSignInPrompt } from "./api/client";
import { mayDecide, useMe, type CurrentUser } from "./api/currentUser";
import { ApprovalModal } from "./card/ApprovalModal";
import { ErrorBoundary } from "./components/ErrorBoundary";
import { FreezeBanner } from "./components/FreezeBanner";
import { SignedOutNotice } from "./components/SignedOutNotice";
import { ErrorMessage, Loading } from "./components/States";
import { approvalIdAt, readLinkToken } from "./live/approvalLink";
import { useLiveState, type StreamState } from "./live/live";
import { useNotifications } from "./live/notifications";
import { useSessionSync } from "./live/session";
import { findNavPage, homePath, NAV_PAGES } from "./navigation";
import css from "./Shell.module.css";

const LinkPreview = lazy(() => import("./pages/signin/LinkPreview"));
const CONNECTION_LABELS: Record<StreamState, [name: string, color: string, text: string]> = {
  live: ["Live", "green", "This page is up to date."],
  connecting: ["Connecting", "gray", "Connecting to Interlock."],
  offline: ["Offline", "red", "Offline. Reconnecting… This page may be outdated."],
  "signed out": ["Signed out", "red", "Your session has ended. Sign in again to continue."],
};
const PasswordDialog = lazy(() => import("./components/PasswordDialog"));
const UserMenu = lazy(() => import("./components/UserMenu"));
const PATIENCE = 5_000; // a page that takes longer to load leaves the focus where it is

/** What is around every page: where one is, who one is, what waits, and whether what is shown is up to date. */
export function Shell({ children }: { children: ReactNode }) {
  const me = useMe();
  const [path] = useLocation();
  if (me.data) return <Inside me={me.data}>{children}</Inside>; // a session that ended takes no page away
  const id = approvalIdAt(path);
  if (me.isFetched && readLinkToken(id)) return <LinkPreview id={id} token={readLinkToken(id)} />; // stays while one signs in
  if (me.isPending) return <Loading />;
  if (me.error instanceof ApiError && me.error.status === 401)
    return <Redirect to={`/signin?next=${encodeURIComponent(path + location.search)}`} replace />;
  return <ErrorMessage error={me.error} again={() => void me.refetch()} />;
}

function Inside({ me, children }: { me: CurrentUser; children: ReactNode }) {
  const [path] = useLocation();
  const way = findNavPage(path);
  useSessionSync(me);
  useNotifications(me);
  usePageFocus(way?.to ?? path);
  if (path === "/") return <Redirect to={homePath(me)} replace />;
  return (
    <div className={css.frame}>
      <a className={css.skip} href="#page">
        Skip to content
      </a>
      <Navigation me={me} path={path} />
      <main className={css.page} id="page" tabIndex={-1}>
        <SignedOutNotice path={path} />
        <FreezeBanner me={me} />
        <ErrorBoundary of={path}>
          {way && !way.for(me) ? <NotForYou me={me} why={way.why ?? ""} /> : children}
        </ErrorBoundary>
      </main>
      {mayDecide(me) && <ApprovalModal />}
      <SignInPrompt me={me} />
    </div>
  );
}

function Navigation({ me, path }: { me: CurrentUser; path: string }) {
  const [opened, { toggle, close }] = useDisclosure();
  const pending = usePendingCount();
  const here = findNavPage(path);
  const title = here ? `${here.name} · Interlock` : "Interlock";
  useDocumentTitle(pending ? `(${pending}) ${title}` : title);
  useEffect(close, [path, close]);
  return (
    <>
      <header className={css.head}>
        <Burger
          className={css.burger}
          opened={opened}
          onClick={toggle}
          size="sm"
          aria-label="Pages"
          aria-expanded={opened}
          aria-controls="ways"
        />
        <Link href="/" className={css.name}>
          Interlock
        </Link>
        <div className={css.right}>
          <ConnectionStatus />
          <UserButton me={me} />
        </div>
      </header>
      <nav
        className={css.ways}
        id="ways"
        aria-label="Pages"
        data-open={opened || undefined}
        onKeyDown={(event) => event.key === "Escape" && close()}
      >
        {NAV_PAGES.filter((way) => way.for(me)).map(({ to, name }) => (
          <Link
            key={to}
            href={to}
            className={css.way}
            onClick={close}
            aria-current={to === here?.to ? "page" : undefined}
          >
            {name}
            {to === "/inbox" && pending > 0 && (
              <span className={css.count}>
                {pending}
                <VisuallyHidden> pending</VisuallyHidden>
              </span>
            )}
          </Link>
        ))}
      </nav>
    </>
  );
}

/** What one may not do says why. */
function NotForYou({ me, why }: { me: CurrentUser; why: string }) {
  return (
    <Stack gap="xs">
      <Title order={1} size="h3">
        You do not have access to this page
      </Title>
      <Text>
        {why} Your role is {me.role}; an admin can change it.
      </Text>
    </Stack>
  );
}

/** How many calls wait for people; the live connection says when to count again. */
function usePendingCount(): number {
  const stats = useQuery({
    queryKey: ["stats"],
    queryFn: ({ signal }) => callApi("get", "/api/stats", { signal }),
  });
  return stats.data?.pending ?? 0;
}

/** Whether the page is up to date; quiet while it is. */
function ConnectionStatus() {
  const state = useLiveState();
  const [name, color, text] = CONNECTION_LABELS[state];
  return (
    <Badge color={color} variant="dot" role="status" data-live={state} title={text}>
      {name}
    </Badge>
  );
}

type Answer = (again: boolean) => void;

/** What lasts longer than a session needs a recent sign-in: asked for where it is needed, and then it goes on. */
function SignInPrompt({ me }: { me: CurrentUser }) {
  const [answer, setAnswer] = useState<Answer | null>(null);
  useEffect(() => setSignInPrompt(() => new Promise<boolean>((resolve) => setAnswer(() => resolve))), []);
  if (!answer) return null;
  const end: Answer = (again) => {
    setAnswer(null);
    answer(again);
  };
  return (
    <Suspense fallback={null}>
      <PasswordDialog me={me} onEnd={end} />
    </Suspense>
  );
}

/** Who one is; the menu behind the name is loaded when somebody wants it. */
function UserButton({ me }: { me: CurrentUser }) {
  const [wanted, setWanted] = useState(false);
  const name = (
    <Button
      variant="subtle"
      size="sm"
      h={44}
      px="xs"
      c="inherit"
      aria-haspopup="menu"
      onClick={() => setWanted(true)}
    >
      {me.name}
    </Button>
  );
  return wanted ? (
    <Suspense fallback={name}>
      <UserMenu me={me} />
    </Suspense>
  ) : (
    name
  );
}

/** After going to another page, a screen reader and the keyboard go on at its heading, unless the page wants it elsewhere. */
function usePageFocus(page: string): void {
  const before = useRef(page);
  useEffect(() => {
    if (before.current === page) return;
    before.current = page;
    window.scrollTo(0, 0);
    return onceThere(heading, focusUnlessTaken);
  }, [page]);
}

/** That of the page before stays, hidden, until the next one is loaded. */
function heading(): HTMLElement | null {
  const found = document.querySelector<HTMLElement>("main h1");
  return found?.checkVisibility() ? found : null;
}

function onceThere(find: () => HTMLElement | null, then: (found: HTMLElement) => void): () => void {
  const look = () => {
    const found = find();
    if (!found) return;
    stop();
    then(found);
  };
  const observer = new MutationObserver(look);
  const timer = setTimeout(() => stop(), PATIENCE);
  const stop = () => {
    observer.disconnect();
    clearTimeout(timer);
  };
  observer.observe(document.body, { childList: true, subtree: true });
  look();
  return stop;
}

function focusUnlessTaken(heading: HTMLElement): void {
  const focused = document.activeElement;
  if (focused && focused !== document.body && !focused.closest("nav, header")) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}
