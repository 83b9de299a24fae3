import { useQuery } from "@tanstack/react-query";
import { Redirect } from "wouter";
import { callApi } from "./api/client";
import { isAdmin, mayDecide, type CurrentUser } from "./api/currentUser";
import { Loading } from "./components/States";
import { isFirstRun } from "./firstRun";
import { homePath } from "./navigation";

/** Where the app opens: a server without a single call shows an admin how to connect an agent. */
export function FirstPage({ me }: { me: CurrentUser }) {
  const stats = useQuery({
    queryKey: ["stats"],
    queryFn: ({ signal }) => callApi("get", "/api/stats", { signal }),
  });
  const canAnswer = useCanAnswer(me);
  if ((stats.isPending && isAdmin(me)) || canAnswer === undefined) return <Loading />;
  const isFirst = stats.data && isFirstRun(me, stats.data);
  return <Redirect to={isFirst ? "/connect" : homePath(me, canAnswer)} replace />;
}

/** Whether the chat has a model that can be used; undefined until it is known. */
function useCanAnswer(me: CurrentUser): boolean | undefined {
  const models = useQuery({
    queryKey: ["models", ""],
    queryFn: ({ signal }) => callApi("get", "/api/models", { query: { name: "" }, signal }),
    staleTime: 60_000,
    enabled: mayDecide(me),
  });
  if (!mayDecide(me) || models.isError) return true;
  return models.data?.items.some(({ problem }) => !problem);
}
