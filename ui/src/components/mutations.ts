import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { ApiError } from "../api/client";

/** Sends a request, then reloads the data that it may have changed. */
export function useSendMutation<Given, Answer>(
  send: (variables: Given, idempotencyKey: string) => Promise<Answer>,
  queryKeys: string[],
  onDone?: (answer: Answer) => void,
) {
  const queries = useQueryClient();
  const idempotencyKey = useRef(crypto.randomUUID());
  return useMutation({
    mutationFn: (variables: Given) => send(variables, idempotencyKey.current),
    onSuccess: async (answer) => {
      idempotencyKey.current = crypto.randomUUID();
      onDone?.(answer);
      await Promise.all(queryKeys.map((key) => queries.invalidateQueries({ queryKey: [key] })));
    },
    onError: (error) => {
      if (!(error instanceof ApiError) || error.status) idempotencyKey.current = crypto.randomUUID(); // the server answered
    },
  });
}

/**
 * Saves an item bound to the version that was loaded; the server refuses if somebody else changed it. `place` puts
 * the saved item into what is stored at `queryKey`, if that is more than the item.
 */
export function useSaveItem<Body, Saved, Stored = Saved>(
  queryKey: string[],
  send: (body: Body, headers: Record<string, string>) => Promise<Saved>,
  place?: (stored: Stored, saved: Saved) => Stored,
) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ body, etag }: { body: Body; etag: string }) => send(body, { "if-match": etag }),
    onSuccess: (saved) => {
      if (place) queries.setQueryData<Stored>(queryKey, (stored) => stored && place(stored, saved));
      else queries.setQueryData(queryKey, saved);
      void queries.invalidateQueries({ queryKey: queryKey.slice(0, 1) });
    },
    onError: () => void queries.invalidateQueries({ queryKey }),
  });
}
