import { Badge } from "@mantine/core";
import { useLiveState, type State } from "../live/live";

const SAYS: Record<State, [name: string, color: string, text: string]> = {
  live: ["Live", "green", "What you see is what is so now."],
  connecting: ["Connecting", "gray", "Connecting to Interlock."],
  offline: ["Offline", "red", "The connection is gone and is tried again. What you see may be old."],
  "signed out": ["Signed out", "red", "Your session has ended. Sign in again to go on."],
};

/** Whether the page is up to date; quiet while it is. */
export function Connection() {
  const state = useLiveState();
  const [name, color, text] = SAYS[state];
  return (
    <Badge color={color} variant="dot" role="status" data-live={state} title={text}>
      {name}
    </Badge>
  );
}
