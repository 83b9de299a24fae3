import { lazy, Suspense, type ComponentType } from "react";
import { Link, useParams } from "wouter";
import { isAdmin, useMe, type CurrentUser } from "../../api/currentUser";
import NotFound from "../../components/NotFound";
import { Page } from "../../components/Page";
import { Loading } from "../../components/States";
import * as messages from "./messages";
import css from "./Settings.module.css";

interface Tab {
  id: string;
  name: string;
  page: ComponentType<{ me: CurrentUser }>;
  for?: (me: CurrentUser) => boolean;
}

const TABS: Tab[] = [
  { id: "me", name: messages.meTab, page: lazy(() => import("./me/MeTab")) },
  { id: "people", name: messages.people, page: lazy(() => import("./people/PeopleTab")) },
  { id: "teams", name: messages.teams, page: lazy(() => import("./people/TeamsTab")) },
  { id: "keys", name: messages.keys, page: lazy(() => import("./keys/KeysTab")), for: isAdmin },
  { id: "freeze", name: messages.freeze, page: lazy(() => import("./freezes/FreezesTab")), for: isAdmin },
  { id: "grants", name: messages.grants, page: lazy(() => import("./grants/GrantsTab")) },
  { id: "channels", name: messages.channels, page: lazy(() => import("./channels/ChannelsTab")) },
  { id: "about", name: messages.about, page: lazy(() => import("./AboutTab")) },
];

/** One URL per tab; tabs without access are not offered. */
export default function Settings() {
  const { tab = "me" } = useParams();
  const me = useMe().data;
  if (!me) return <Loading />;
  const mine = TABS.filter((each) => each.for?.(me) ?? true);
  const here = mine.find(({ id }) => id === tab);
  return (
    <Page title={messages.settings} opened={here && tab !== "me" ? here.name : messages.settings}>
      <nav aria-label={messages.settings} className={css.tabs}>
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
