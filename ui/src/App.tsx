import { MantineProvider } from "@mantine/core";
import { MutationCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useEffect } from "react";
import { approvalKey } from "./api/approvals";
import { ApiError } from "./api/client";
import { live } from "./live/live";
import { Pages } from "./Pages";
import { styleNonce, theme, themeVariables } from "./theme";

const REFRESH_INTERVAL = 1_000;
const QUERY_KEYS: [prefix: string, key: string][] = [
  ["policy_", "policy"],
  ["grant", "grants"],
  ["agent_", "agents"],
  ["agent_", "activity"],
  ["content_", "content"],
  ["content_", "okrs"],
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
        void queries.invalidateQueries({ queryKey: ["me"] }); // checks whether the session has ended
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

/** Invalidates queries when the live connection reports a change; counts at most once a second. */
function followLedger(queries: QueryClient): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const invalidate = (...queryKey: string[]) => void queries.invalidateQueries({ queryKey });
  const refreshCounts = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      invalidate("stats");
      invalidate("grants"); // a call may have used a grant
    }, REFRESH_INTERVAL);
  };
  const unsubscribe = live.subscribe(({ kind, approval_id }) => {
    if (kind === "reset") void queries.invalidateQueries();
    else if (approval_id) {
      invalidate(...approvalKey(approval_id));
      refreshCounts();
      if (kind === "succeeded") {
        invalidate("content"); // the call may have changed it
        invalidate("okrs");
      }
    } else for (const [, key] of QUERY_KEYS.filter(([prefix]) => kind.startsWith(prefix))) invalidate(key);
  });
  const unwatch = live.watch(() => {
    if (live.state === "live" || live.state === "signed out") invalidate("me");
  });
  return () => {
    unsubscribe();
    unwatch();
    clearTimeout(timer);
  };
}
