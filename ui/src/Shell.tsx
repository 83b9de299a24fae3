import { Burger, Stack, Text, Title, VisuallyHidden } from "@mantine/core";
import { useDisclosure, useDocumentTitle } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { lazy, useEffect, type ReactNode } from "react";
import { Link, Redirect, useLocation } from "wouter";
import { call, Refused } from "./api/client";
import { mayDecide, useMe, type Myself } from "./api/me";
import { Asked } from "./card/Asked";
import { useAccount } from "./live/account";
import { approvalAt, tokenFor } from "./live/link";
import { useNotifications } from "./live/notify";
import { Boundary } from "./components/Boundary";
import { Connection } from "./components/Connection";
import { Frozen } from "./components/Frozen";
import { Person } from "./components/Person";
import { SignInAgain } from "./components/SignInAgain";
import { SignedOut } from "./components/SignedOut";
import { Loading, Problem } from "./components/States";
import { useFocusOnPage } from "./components/pageFocus";
import css from "./Shell.module.css";
import { homeOf, wayOf, WAYS } from "./ways";

const ByLink = lazy(() => import("./pages/signin/ByLink"));

/** What is around every page: where one is, who one is, what waits, and whether what is shown is up to date. */
export function Shell({ children }: { children: ReactNode }) {
  const me = useMe();
  const [path] = useLocation();
  if (me.data) return <Inside me={me.data}>{children}</Inside>; // a session that ended takes no page away
  const id = approvalAt(path);
  if (me.isFetched && tokenFor(id)) return <ByLink id={id} token={tokenFor(id)} />; // stays while one signs in
  if (me.isPending) return <Loading />;
  if (me.error instanceof Refused && me.error.status === 401)
    return <Redirect to={`/signin?next=${encodeURIComponent(path + location.search)}`} replace />;
  return <Problem error={me.error} again={() => void me.refetch()} />;
}

function Inside({ me, children }: { me: Myself; children: ReactNode }) {
  const [path] = useLocation();
  const way = wayOf(path);
  useAccount(me);
  useNotifications(me);
  useFocusOnPage(way?.to ?? path);
  if (path === "/") return <Redirect to={homeOf(me)} replace />;
  return (
    <div className={css.frame}>
      <a className={css.skip} href="#page">
        To the page
      </a>
      <Ways me={me} path={path} />
      <main className={css.page} id="page" tabIndex={-1}>
        <SignedOut path={path} />
        <Frozen me={me} />
        <Boundary of={path}>
          {way && !way.for(me) ? <NotForYou me={me} why={way.why ?? ""} /> : children}
        </Boundary>
      </main>
      {mayDecide(me) && <Asked />}
      <SignInAgain me={me} />
    </div>
  );
}

function Ways({ me, path }: { me: Myself; path: string }) {
  const [opened, { toggle, close }] = useDisclosure();
  const pending = usePending();
  const here = wayOf(path);
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
          <Connection />
          <Person me={me} />
        </div>
      </header>
      <nav
        className={css.ways}
        id="ways"
        aria-label="Pages"
        data-open={opened || undefined}
        onKeyDown={(event) => event.key === "Escape" && close()}
      >
        {WAYS.filter((way) => way.for(me)).map(({ to, name }) => (
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
                <VisuallyHidden> waiting</VisuallyHidden>
              </span>
            )}
          </Link>
        ))}
      </nav>
    </>
  );
}

/** What one may not do says why. */
function NotForYou({ me, why }: { me: Myself; why: string }) {
  return (
    <Stack gap="xs">
      <Title order={1} size="h3">
        This page is not for you
      </Title>
      <Text>
        {why} You are a {me.role}; an admin can change that.
      </Text>
    </Stack>
  );
}

/** How many calls wait for people; the live connection says when to count again. */
export function usePending(): number {
  const stats = useQuery({
    queryKey: ["stats"],
    queryFn: ({ signal }) => call("get", "/api/stats", { signal }),
  });
  return stats.data?.pending ?? 0;
}
