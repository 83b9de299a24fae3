import { MantineProvider } from "@mantine/core";
import { MutationCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useEffect } from "react";
import { Refused } from "./api/client";
import { followWith } from "./live/queries";
import { Pages } from "./Pages";
import { styleNonce, theme, variables } from "./theme";

const queries: QueryClient = new QueryClient({
  mutationCache: new MutationCache({
    onError: (error) => {
      if (error instanceof Refused && error.status === 401)
        void queries.invalidateQueries({ queryKey: ["me"] }); // is it the session?
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (count, error) =>
        count < 3 && (!(error instanceof Refused) || error.status === 0 || error.status >= 500),
    },
  },
});

export function App() {
  useEffect(() => followWith(queries), []);
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={variables}
      defaultColorScheme="auto"
      getStyleNonce={styleNonce}
    >
      <QueryClientProvider client={queries}>
        <Pages />
      </QueryClientProvider>
    </MantineProvider>
  );
}
