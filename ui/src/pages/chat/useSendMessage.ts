import { useMutation } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import { sendRequest, type ApiError } from "../../api/client";
import { EventParser } from "../../live/sse";

interface Wanted {
  text: string;
  once: string;
  onSent?: () => void;
}

/** Sends messages one at a time. One that did not get through is tried again under the same key. */
export function useSendMessage(
  thread: string | undefined,
  agent: string,
  onAccepted: (accepted: AcceptedMessage, text: string) => void,
) {
  const sending = useMutation({
    mutationFn: ({ text, once }: Wanted) => sendMessage({ text, once, thread, agent }),
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
    refused: sending.error as ApiError | null,
    forget: reset,
  };
}

export type MessageSender = ReturnType<typeof useSendMessage>;

interface OutgoingMessage {
  text: string;
  /** The same for every try: sent twice, it is one message. */
  once: string;
  thread?: string;
  agent?: string;
}

interface AcceptedMessage {
  thread: string;
  /** Where the message stands in its thread; 0 if the connection broke before that was told. */
  line: number;
}

/** Sends a message. What comes of it is read elsewhere, so that no second stream stays open. */
async function sendMessage({ text, once, thread, agent }: OutgoingMessage): Promise<AcceptedMessage> {
  const reading = new AbortController();
  const body = { message: text, thread_id: thread, agent: thread ? undefined : agent };
  const headers = { accept: "text/event-stream" };
  const answer = await sendRequest("post", "/api/chat", { body, once, headers, signal: reading.signal });
  const line = await lineOf(answer).catch(() => 0);
  reading.abort();
  return { thread: answer.headers.get("x-thread-id") ?? "", line };
}

/** The stream begins with where it stands: at the message. */
async function lineOf(answer: Response): Promise<number> {
  const cutter = new EventParser();
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  while (reader && !cutter.lastId) {
    const { done, value } = await reader.read();
    if (done) return 0;
    cutter.take(value);
  }
  return Number.parseInt(cutter.lastId, 10) || 0;
}
