import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { ApiError, callApi } from "../api/client";
import { useMe, type CurrentUser } from "../api/currentUser";
import { closeDrafts } from "../components/draftStorage";
import { live, useLiveState } from "./live";

/** Messages between the tabs of a browser about its session. */
type SessionMessage = { entered: string } | { left: true };

const channel = new BroadcastChannel("interlock-account");

/** Ends this session, or all sessions of the user, and leaves the page in every tab. */
export async function signOut(scope: "here" | "everywhere"): Promise<void> {
  await callApi("delete", scope === "here" ? "/api/session" : "/api/sessions").catch(ignoreSignedOut);
  channel.postMessage({ left: true } satisfies SessionMessage);
  leavePage();
}

/** The next person in this tab does not read what was typed in it. */
function leavePage(): void {
  closeDrafts();
  location.assign("/signin");
}

/** Keeps a tab in sync with the session: it recovers after a new sign-in, and reloads for another user. */
export function useSessionSync(me: CurrentUser): void {
  const queries = useQueryClient();
  const { dataUpdatedAt, error } = useMe();
  const user = `${me.workspace}/${me.name}`;
  const initialUser = useRef(user);
  const wasSignedOut = useRef(false);
  useEffect(() => {
    if (initialUser.current !== user) location.reload();
  }, [user]);
  useEffect(() => channel.postMessage({ entered: user } satisfies SessionMessage), [user]);
  useEffect(() => {
    if (error) return;
    live.start(user);
    if (wasSignedOut.current) void queries.invalidateQueries();
    wasSignedOut.current = false;
  }, [user, dataUpdatedAt, error, queries]);
  useEffect(() => {
    if (isSignedOut(error)) wasSignedOut.current = true;
  }, [error]);
  useEffect(() => {
    const onMessage = ({ data }: MessageEvent<SessionMessage>) => {
      if ("left" in data) leavePage();
      else if (data.entered !== user || live.state === "signed out")
        void queries.invalidateQueries({ queryKey: ["me"] });
    };
    channel.addEventListener("message", onMessage);
    return () => channel.removeEventListener("message", onMessage);
  }, [user, queries]);
}

/** Whether the session ended while the page was open. */
export function useSignedOut(): boolean {
  const { error } = useMe();
  const state = useLiveState();
  return isSignedOut(error) || state === "signed out";
}

function isSignedOut(error: Error | null): boolean {
  return error instanceof ApiError && error.status === 401;
}

/** A session that has already ended is not an error. */
function ignoreSignedOut(error: Error): void {
  if (!isSignedOut(error)) throw error;
}
