import { MantineProvider } from "@mantine/core";
import { MutationCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useEffect } from "react";
import { approvalKey } from "./api/approvals";
import { ApiError } from "./api/client";
import { live } from "./live/live";
import { Pages } from "./Pages";
import { styleNonce, theme, themeVariables } from "./theme";

const AT_MOST_EVERY = 1_000;
const ABOUT: [beginning: string, key: string][] = [
  ["policy_", "policy"],
  ["grant", "grants"],
  ["agent_", "agents"],
  ["user_", "users"],
  ["away_", "users"],
  ["key_", "keys"],
  ["frozen", "freezes"],
  ["unfrozen", "freezes"],
];

const queries: QueryClient = new QueryClient({
  mutationCache: new MutationCache({
    onError: (error) => {
      if (error instanceof ApiError && error.status === 401)
        void queries.invalidateQueries({ queryKey: ["me"] }); // is it the session?
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (count, error) =>
        count < 3 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
    },
  },
});

export function App() {
  useEffect(() => followLedger(queries), []);
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={themeVariables}
      defaultColorScheme="auto"
      getStyleNonce={styleNonce}
    >
      <QueryClientProvider client={queries}>
        <Pages />
      </QueryClientProvider>
    </MantineProvider>
  );
}

/** What was read is read again when the live connection says that it changed; counts once a second at most. */
function followLedger(queries: QueryClient): () => void {
  let waiting: ReturnType<typeof setTimeout> | undefined;
  const again = (...queryKey: string[]) => void queries.invalidateQueries({ queryKey });
  const countAgain = () => {
    waiting ??= setTimeout(() => {
      waiting = undefined;
      again("stats");
      again("grants"); // a call may have used one
    }, AT_MOST_EVERY);
  };
  const unsubscribe = live.subscribe(({ kind, approval_id }) => {
    if (kind === "reset") void queries.invalidateQueries();
    else if (approval_id) {
      again(...approvalKey(approval_id));
      countAgain();
    } else for (const [, key] of ABOUT.filter(([beginning]) => kind.startsWith(beginning))) again(key);
  });
  const unwatch = live.watch(() => {
    if (live.state === "live" || live.state === "signed out") again("me");
  });
  return () => {
    unsubscribe();
    unwatch();
    clearTimeout(waiting);
  };
}
