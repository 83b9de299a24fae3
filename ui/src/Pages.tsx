import { lazy, Suspense } from "react";
import { Route, Switch } from "wouter";
import { Loading } from "./components/States";
import { Shell } from "./Shell";

const Chat = lazy(() => import("./pages/chat/Chat"));
const Inbox = lazy(() => import("./pages/inbox/Inbox"));
const ApprovalPage = lazy(() => import("./pages/ApprovalPage"));
const History = lazy(() => import("./pages/history/History"));
const Statistics = lazy(() => import("./pages/statistics/Statistics"));
const Agents = lazy(() => import("./pages/agents/Agents"));
const Connect = lazy(() => import("./pages/connect/Connect"));
const Content = lazy(() => import("./pages/content/Content"));
const Okrs = lazy(() => import("./pages/okrs/Okrs"));
const Policy = lazy(() => import("./pages/policy/Policy"));
const Settings = lazy(() => import("./pages/settings/Settings"));
const NotFound = lazy(() => import("./components/NotFound"));
const SignIn = lazy(() => import("./pages/signin/SignIn"));
const Welcome = lazy(() => import("./pages/signin/Welcome"));

/** Every address that the server answers with this page; its list is in server/static.py. */
export function Pages() {
  return (
    <Suspense fallback={<Loading />}>
      <Switch>
        <Route path="/signin" component={SignIn} />
        <Route path="/welcome" component={Welcome} />
        <Route>
          <Shell>
            <Suspense fallback={<Loading />}>
              <Switch>
                <Route path="/chat/:thread?" component={Chat} />
                <Route path="/inbox" component={Inbox} />
                <Route path="/a/:id" component={ApprovalPage} />
                <Route path="/history" component={History} />
                <Route path="/statistics" component={Statistics} />
                <Route path="/agents/:name?" component={Agents} />
                <Route path="/connect" component={Connect} />
                <Route path="/content/:kind?" component={Content} />
                <Route path="/content/:kind/:item" component={Content} />
                <Route path="/okrs/:id?" component={Okrs} />
                <Route path="/policy" component={Policy} />
                <Route path="/settings/:tab?" component={Settings} />
                <Route component={NotFound} />
              </Switch>
            </Suspense>
          </Shell>
        </Route>
      </Switch>
    </Suspense>
  );
}
