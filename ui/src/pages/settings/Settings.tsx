import { lazy, Suspense, type ComponentType } from "react";
import { Link, useParams } from "wouter";
import { isAdmin, useMe, type CurrentUser } from "../../api/currentUser";
import NotFound from "../../components/NotFound";
import { Page } from "../../components/Page";
import { Loading } from "../../components/States";
import css from "./Settings.module.css";

interface Tab {
  id: string;
  name: string;
  page: ComponentType<{ me: CurrentUser }>;
  for?: (me: CurrentUser) => boolean;
}

const TABS: Tab[] = [
  { id: "me", name: "Me", page: lazy(() => import("./me/MeTab")) },
  { id: "people", name: "People", page: lazy(() => import("./people/PeopleTab")) },
  { id: "teams", name: "Teams", page: lazy(() => import("./people/TeamsTab")) },
  { id: "keys", name: "Keys", page: lazy(() => import("./keys/KeysTab")), for: isAdmin },
  { id: "freeze", name: "Freeze", page: lazy(() => import("./freezes/FreezesTab")), for: isAdmin },
  { id: "grants", name: "Grants", page: lazy(() => import("./grants/GrantsTab")) },
  { id: "channels", name: "Channels", page: lazy(() => import("./channels/ChannelsTab")) },
  { id: "about", name: "About", page: lazy(() => import("./AboutTab")) },
];

/** One URL per tab; tabs without access are not offered. */
export default function Settings() {
  const { tab = "me" } = useParams();
  const me = useMe().data;
  if (!me) return <Loading />;
  const mine = TABS.filter((each) => each.for?.(me) ?? true);
  const here = mine.find(({ id }) => id === tab);
  return (
    <Page title="Settings" opened={here && tab !== "me" ? here.name : "Settings"}>
      <nav aria-label="Settings" className={css.tabs}>
        {mine.map(({ id, name }) => (
          <Link
            key={id}
            href={`/settings/${id}`}
            className={css.tab}
            aria-current={id === tab ? "page" : undefined}
          >
            {name}
          </Link>
        ))}
      </nav>
      <div className={css.tabbed}>
        <Suspense fallback={<Loading />}>{here ? <here.page me={me} /> : <NotFound />}</Suspense>
      </div>
    </Page>
  );
}
