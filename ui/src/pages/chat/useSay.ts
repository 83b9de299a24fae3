import { useMutation } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import type { Refused } from "../../api/client";
import { say, type Accepted } from "./say";

interface Wanted {
  text: string;
  once: string;
  onSent?: () => void;
}

/** Sends messages one at a time. One that did not get through is tried again under the same key. */
export function useSay(
  thread: string | undefined,
  agent: string,
  onAccepted: (accepted: Accepted, text: string) => void,
) {
  const sending = useMutation({
    mutationFn: ({ text, once }: Wanted) => say({ text, once, thread, agent }),
    onSuccess: (accepted, { text, onSent }) => {
      onSent?.();
      onAccepted(accepted, text);
    },
    networkMode: "always",
  });
  const { mutate, isPending, reset } = sending;
  useEffect(() => reset(), [thread, reset]);
  const isBusy = useRef(false);
  isBusy.current = isPending;
  const send = useCallback(
    (text: string, once: string = crypto.randomUUID(), onSent?: () => void) => {
      if (isBusy.current) return;
      isBusy.current = true;
      mutate({ text, once, onSent });
    },
    [mutate],
  );
  return {
    say: send,
    isSending: isPending,
    refused: sending.error as Refused | null,
    forget: reset,
  };
}

export type Saying = ReturnType<typeof useSay>;
