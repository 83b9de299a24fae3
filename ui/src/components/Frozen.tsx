import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { call, type Shapes } from "../api/client";
import { isAdmin, type Myself } from "../api/me";
import { visible } from "./visible";

export type FreezeInfo = Shapes["FreezeInfo"];

const FrozenAlert = lazy(() => import("./FrozenAlert"));

export function useFreezes() {
  return useQuery({
    queryKey: ["freezes"],
    queryFn: ({ signal }) => call("get", "/api/freeze", { signal }),
  });
}

/** "The tool pay_*" */
export const scopeOf = ({ scope, name }: FreezeInfo): string =>
  name ? `The ${scope} ${visible(name)}` : "This workspace";

/** On every page while something is frozen. */
export function Frozen({ me }: { me: Myself }) {
  const freezes = useFreezes().data?.items ?? [];
  if (!freezes.length) return null;
  return (
    <Suspense fallback={null}>
      <FrozenAlert freezes={freezes} admin={isAdmin(me)} />
    </Suspense>
  );
}
