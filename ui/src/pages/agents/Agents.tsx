import { lazy, Suspense } from "react";
import { useLocation, useSearchParams } from "wouter";
import { isAdmin, useMe } from "../../api/currentUser";
import { Loading } from "../../components/States";
import { useAgentChanges } from "./queries";

const AgentList = lazy(() => import("./AgentList"));
const AgentDetails = lazy(() => import("./AgentDetails"));
const NewAgent = lazy(() => import("./NewAgent"));

/** All agents, one agent with its tools, or the form of a new one. */
export default function Agents() {
  useLocation(); // rerenders for another agent
  useAgentChanges();
  const [params] = useSearchParams();
  const me = useMe().data;
  const name = decodeURIComponent(location.pathname.split("/")[2] ?? ""); // the router decodes only a part of it
  const isNew = !name && isAdmin(me) && (params.has("new") || params.has("copy"));
  return (
    <Suspense fallback={<Loading />}>
      {name && <AgentDetails key={name} name={name} />}
      {isNew && <NewAgent copied={params.get("copy") ?? ""} />}
      {!name && !isNew && <AgentList />}
    </Suspense>
  );
}
