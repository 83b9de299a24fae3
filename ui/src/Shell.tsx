import { Button, Stack, Text, Title, VisuallyHidden } from "@mantine/core";
import { useDisclosure, useDocumentTitle } from "@mantine/hooks";
import { lazy, Suspense, useEffect, useRef, useState, type ReactNode } from "react";
import { Link, Redirect, useLocation } from "wouter";
import { ApiError, setSignInPrompt } from "./api/client";
import { mayDecide, useMe, type CurrentUser } from "./api/currentUser";
import { usePendingCount } from "./api/stats";
import { ApprovalModal } from "./card/ApprovalModal";
import { ErrorBoundary } from "./components/ErrorBoundary";
import { FreezeBanner } from "./components/FreezeBanner";
import { Logo } from "./components/Logo";
import { PageTitleProvider, useTabTitle } from "./components/PageTitle";
import { SignedOutNotice } from "./components/SignedOutNotice";
import { ErrorMessage, Loading } from "./components/States";
import { FirstPage } from "./FirstPage";
import { approvalIdAt, readLinkToken } from "./live/approvalLink";
import { useLiveState } from "./live/live";
import { useNotifications } from "./live/notifications";
import { useSessionSync } from "./live/session";
import * as messages from "./messages";
import { findNavPage, NAV_PAGES } from "./navigation";
import css from "./Shell.module.css";

const LinkPreview = lazy(() => import("./pages/signin/LinkPreview"));

const PasswordDialog = lazy(() => import("./components/PasswordDialog"));
const UserMenu = lazy(() => import("./components/UserMenu"));
const FOCUS_TIMEOUT = 5_000; // a page that takes longer to load leaves the focus where it is

/** The frame of every page: navigation, user menu, pending count, and connection status. */
export function Shell({ children }: { children: ReactNode }) {
  const me = useMe();
  const [path] = useLocation();
  if (me.data) return <SignedInShell me={me.data}>{children}</SignedInShell>; // an ended session does not unload the page
  const id = approvalIdAt(path);
  if (me.isFetched && readLinkToken(id)) return <LinkPreview id={id} token={readLinkToken(id)} />; // stays visible while the user signs in
  if (me.isPending) return <Loading />;
  if (me.error instanceof ApiError && me.error.status === 401)
    return <Redirect to={`/signin?next=${encodeURIComponent(path + location.search)}`} replace />;
  return <ErrorMessage error={me.error} onRetry={() => void me.refetch()} />;
}

function SignedInShell({ me, children }: { me: CurrentUser; children: ReactNode }) {
  const [path] = useLocation();
  const navPage = findNavPage(path);
  useSessionSync(me);
  useNotifications(me);
  usePageFocus(navPage?.to ?? path);
  if (path === "/") return <FirstPage me={me} />;
  return (
    <PageTitleProvider>
      <div className={css.frame}>
        <a className={css.skip} href="#page">
          {messages.skipToContent}
        </a>
        <Navigation me={me} path={path} />
        <main className={css.page} id="page" tabIndex={-1}>
          <SignedOutNotice path={path} />
          <FreezeBanner me={me} />
          <ErrorBoundary resetKey={path}>
            {navPage && !navPage.isAllowed(me) ? (
              <NoAccess me={me} reason={navPage.deniedReason ?? ""} />
            ) : (
              children
            )}
          </ErrorBoundary>
        </main>
        {mayDecide(me) && <ApprovalModal />}
        <SignInPrompt me={me} />
      </div>
    </PageTitleProvider>
  );
}

function Navigation({ me, path }: { me: CurrentUser; path: string }) {
  const [opened, { toggle, close }] = useDisclosure();
  const pending = usePendingCount();
  const currentPage = findNavPage(path);
  useDocumentTitle(useTabTitle(currentPage?.name ?? "", pending));
  useEffect(close, [path, close]);
  return (
    <header className={css.side}>
      <button
        type="button"
        className={css.burger}
        onClick={toggle}
        aria-label={messages.pages}
        aria-expanded={opened}
        aria-controls="navigation"
      />
      <Link href="/" className={css.brand}>
        <Logo />
        {messages.interlock}
      </Link>
      <nav
        className={css.navigation}
        id="navigation"
        aria-label={messages.pages}
        data-open={opened || undefined}
        onKeyDown={(event) => event.key === "Escape" && close()}
      >
        {NAV_PAGES.filter((navPage) => navPage.isAllowed(me)).map(({ to, name }) => (
          <Link
            key={to}
            href={to}
            className={css.navLink}
            onClick={close}
            aria-current={to === currentPage?.to ? "page" : undefined}
          >
            {name}
            {to === "/inbox" && pending > 0 && (
              <span className={css.count}>
                {pending.toLocaleString("en")}
                <VisuallyHidden> {messages.pending}</VisuallyHidden>
              </span>
            )}
          </Link>
        ))}
      </nav>
      <div className={css.account}>
        <UserButton me={me} />
        <ConnectionStatus />
      </div>
    </header>
  );
}

/** Explains why the user has no access. */
function NoAccess({ me, reason }: { me: CurrentUser; reason: string }) {
  return (
    <Stack gap="xs">
      <Title order={1} size="h3">
        {messages.noAccess}
      </Title>
      <Text>{messages.yourRoleIs(reason, me.role)}</Text>
    </Stack>
  );
}

/** Shows whether the page is up to date. */
function ConnectionStatus() {
  const state = useLiveState();
  const [name, text] = messages.CONNECTION_LABELS[state];
  return (
    <span className={css.connection} role="status" data-live={state} title={text}>
      {name}
    </span>
  );
}

type SignInResult = (isSignedIn: boolean) => void;

/** Asks for a recent sign-in when the server requires one, then repeats the request. */
function SignInPrompt({ me }: { me: CurrentUser }) {
  const [answer, setAnswer] = useState<SignInResult | null>(null);
  useEffect(() => setSignInPrompt(() => new Promise<boolean>((resolve) => setAnswer(() => resolve))), []);
  if (!answer) return null;
  const finish: SignInResult = (isSignedIn) => {
    setAnswer(null);
    answer(isSignedIn);
  };
  return (
    <Suspense fallback={null}>
      <PasswordDialog me={me} onDone={finish} />
    </Suspense>
  );
}

/** The user's name; its menu is loaded on demand. */
function UserButton({ me }: { me: CurrentUser }) {
  const [isMenuOpen, setMenuOpen] = useState(false);
  const name = (
    <Button
      className={css.user}
      variant="subtle"
      color="gray"
      aria-haspopup="menu"
      onClick={() => setMenuOpen(true)}
    >
      <Initials name={me.name} />
      {me.name}
    </Button>
  );
  return isMenuOpen ? (
    <Suspense fallback={name}>
      <UserMenu me={me} className={css.user}>
        <Initials name={me.name} />
      </UserMenu>
    </Suspense>
  ) : (
    name
  );
}

function Initials({ name }: { name: string }) {
  return (
    <span className={css.initials} aria-hidden="true">
      {Array.from(name).slice(0, 2).join("").toUpperCase()}
    </span>
  );
}

/** Moves the focus to the heading of the new page, unless the page has already set it. */
function usePageFocus(page: string): void {
  const previous = useRef(page);
  useEffect(() => {
    if (previous.current === page) return;
    previous.current = page;
    window.scrollTo(0, 0);
    return waitForElement(findHeading, focusUnlessTaken);
  }, [page]);
}

/** The previous page's heading stays, hidden, until the next page is loaded. */
function findHeading(): HTMLElement | null {
  const found = document.querySelector<HTMLElement>("main h1");
  return found?.checkVisibility() ? found : null;
}

function waitForElement(find: () => HTMLElement | null, then: (found: HTMLElement) => void): () => void {
  const check = () => {
    const found = find();
    if (!found) return;
    stop();
    then(found);
  };
  const observer = new MutationObserver(check);
  const timer = setTimeout(() => stop(), FOCUS_TIMEOUT);
  const stop = () => {
    observer.disconnect();
    clearTimeout(timer);
  };
  observer.observe(document.body, { childList: true, subtree: true });
  check();
  return stop;
}

function focusUnlessTaken(findHeading: HTMLElement): void {
  const focused = document.activeElement;
  if (focused && focused !== document.body && !focused.closest("nav, header")) return;
  findHeading.tabIndex = -1;
  findHeading.focus({ preventScroll: true });
}
