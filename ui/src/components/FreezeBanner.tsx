import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { callApi, type Schemas } from "../api/client";
import { isAdmin, type CurrentUser } from "../api/currentUser";
import { escapeInvisible } from "./escapeInvisible";
import * as messages from "./messages";

export type FreezeInfo = Schemas["FreezeInfo"];

const FreezeAlert = lazy(() => import("./FreezeAlert"));

export function useFreezes() {
  return useQuery({
    queryKey: ["freezes"],
    queryFn: ({ signal }) => callApi("get", "/api/freeze", { signal }),
  });
}

/** "The tool pay_*" */
export const describeScope = ({ scope, name }: FreezeInfo): string =>
  name ? messages.frozenScope(scope, escapeInvisible(name)) : messages.thisWorkspace;

/** On every page while a freeze is active. */
export function FreezeBanner({ me }: { me: CurrentUser }) {
  const freezes = useFreezes().data?.items ?? [];
  if (!freezes.length) return null;
  return (
    <Suspense fallback={null}>
      <FreezeAlert freezes={freezes} admin={isAdmin(me)} />
    </Suspense>
  );
}
