import { useQuery } from "@tanstack/react-query";
import { Redirect } from "wouter";
import { callApi } from "./api/client";
import { isAdmin, type CurrentUser } from "./api/currentUser";
import { Loading } from "./components/States";
import { isFirstRun } from "./firstRun";
import { homePath } from "./navigation";

/** Where the app opens: a server without a single call shows an admin how to connect an agent. */
export function FirstPage({ me }: { me: CurrentUser }) {
  const stats = useQuery({
    queryKey: ["stats"],
    queryFn: ({ signal }) => callApi("get", "/api/stats", { signal }),
  });
  if (stats.isPending && isAdmin(me)) return <Loading />;
  const isFirst = stats.data && isFirstRun(me, stats.data);
  return <Redirect to={isFirst ? "/connect" : homePath(me)} replace />;
}
