import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { ApiError, callApi } from "../api/client";
import { useMe, type CurrentUser } from "../api/currentUser";
import { live, useLiveState } from "./live";

/** What the tabs of one browser tell each other about its session. */
type Word = { entered: string } | { left: true };

const channel = new BroadcastChannel("interlock-account");

/** Ends this session, or all of one's own, and leaves no page of it open in this browser. */
export async function signOut(where: "here" | "everywhere"): Promise<void> {
  await callApi("delete", where === "here" ? "/api/session" : "/api/sessions").catch(unlessOver);
  channel.postMessage({ left: true } satisfies Word);
  location.assign("/signin");
}

/** Keeps a tab in step with the session: it heals when somebody signs in again, and starts anew for somebody else. */
export function useSessionSync(me: CurrentUser): void {
  const queries = useQueryClient();
  const { dataUpdatedAt, error } = useMe();
  const who = `${me.workspace}/${me.name}`;
  const first = useRef(who);
  const wasOut = useRef(false);
  useEffect(() => {
    if (first.current !== who) location.reload();
  }, [who]);
  useEffect(() => channel.postMessage({ entered: who } satisfies Word), [who]);
  useEffect(() => {
    if (error) return;
    live.start(who);
    if (wasOut.current) void queries.invalidateQueries();
    wasOut.current = false;
  }, [who, dataUpdatedAt, error, queries]);
  useEffect(() => {
    if (isOut(error)) wasOut.current = true;
  }, [error]);
  useEffect(() => {
    const hear = ({ data }: MessageEvent<Word>) => {
      if ("left" in data) location.assign("/signin");
      else if (data.entered !== who || live.state === "signed out")
        void queries.invalidateQueries({ queryKey: ["me"] });
    };
    channel.addEventListener("message", hear);
    return () => channel.removeEventListener("message", hear);
  }, [who, queries]);
}

/** Whether the session ended while the page was open. */
export function useSignedOut(): boolean {
  const { error } = useMe();
  const state = useLiveState();
  return isOut(error) || state === "signed out";
}

function isOut(error: Error | null): boolean {
  return error instanceof ApiError && error.status === 401;
}

/** A session that has ended already is what was wanted. */
function unlessOver(error: Error): void {
  if (!isOut(error)) throw error;
}
