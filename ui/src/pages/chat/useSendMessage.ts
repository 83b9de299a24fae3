import { useMutation } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import { sendRequest, type ApiError } from "../../api/client";
import { EventParser } from "../../live/sse";

interface SendRequest {
  text: string;
  idempotencyKey: string;
  onSent?: () => void;
}

/** Sends one message at a time. A failed one is retried with the same idempotency key. */
export function useSendMessage(
  thread: string | undefined,
  agent: string,
  onAccepted: (accepted: AcceptedMessage, text: string) => void,
) {
  const sending = useMutation({
    mutationFn: ({ text, idempotencyKey }: SendRequest) =>
      sendMessage({ text, idempotencyKey, thread, agent }),
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
    (text: string, idempotencyKey: string = crypto.randomUUID(), onSent?: () => void) => {
      if (isBusy.current) return;
      isBusy.current = true;
      mutate({ text, idempotencyKey, onSent });
    },
    [mutate],
  );
  return {
    send: send,
    isSending: isPending,
    refused: sending.error as ApiError | null,
    clearError: reset,
  };
}

export type MessageSender = ReturnType<typeof useSendMessage>;

interface OutgoingMessage {
  text: string;
  /** The same for every attempt, so that a repeated request is one message. */
  idempotencyKey: string;
  thread?: string;
  agent?: string;
}

interface AcceptedMessage {
  thread: string;
  /** The message's line in its thread; 0 if the connection broke before the response. */
  line: number;
}

/** Sends a message. The reply is read from the thread's stream, so that no second stream stays open. */
async function sendMessage({
  text,
  idempotencyKey,
  thread,
  agent,
}: OutgoingMessage): Promise<AcceptedMessage> {
  const abort = new AbortController();
  const body = { message: text, thread_id: thread, agent: thread ? undefined : agent };
  const headers = { accept: "text/event-stream" };
  const response = await sendRequest("post", "/api/chat", {
    body,
    idempotencyKey,
    headers,
    signal: abort.signal,
  });
  const line = await readLine(response).catch(() => 0);
  abort.abort();
  return { thread: response.headers.get("x-thread-id") ?? "", line };
}

/** The stream starts at the line of the message. */
async function readLine(response: Response): Promise<number> {
  const parser = new EventParser();
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  while (reader && !parser.lastId) {
    const { done, value } = await reader.read();
    if (done) return 0;
    parser.push(value);
  }
  return Number.parseInt(parser.lastId, 10) || 0;
}
