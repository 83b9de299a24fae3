import { lazy, Suspense } from "react";
import { Route, Switch } from "wouter";
import { Loading, NothingHere } from "./parts/states";
import { Shell } from "./shell";

const Chat = lazy(() => import("./pages/chat/chat"));
const Inbox = lazy(() => import("./pages/inbox/inbox"));
const Approval = lazy(() => import("./pages/approval"));
const History = lazy(() => import("./pages/history/history"));
const Statistics = lazy(() => import("./pages/statistics/statistics"));
const Agents = lazy(() => import("./pages/agents/agents"));
const Policy = lazy(() => import("./pages/policy/policy"));
const Settings = lazy(() => import("./pages/settings/settings"));
const SignIn = lazy(() => import("./pages/signin/signin"));
const Welcome = lazy(() => import("./pages/signin/welcome"));

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
                <Route path="/a/:id" component={Approval} />
                <Route path="/history" component={History} />
                <Route path="/statistics" component={Statistics} />
                <Route path="/agents/:name?" component={Agents} />
                <Route path="/policy" component={Policy} />
                <Route path="/settings/:tab?" component={Settings} />
                <Route component={NothingHere} />
              </Switch>
            </Suspense>
          </Shell>
        </Route>
      </Switch>
    </Suspense>
  );
}
