import { send } from "../../api/client";
import { Cutter } from "../../live/sse";

export interface Message {
  text: string;
  /** The same for every try: sent twice, it is one message. */
  once: string;
  thread?: string;
  agent?: string;
}

export interface Accepted {
  thread: string;
  /** Where the message stands in its thread; 0 if the connection broke before that was told. */
  line: number;
}

/** Sends a message. What comes of it is read elsewhere, so that no second stream stays open. */
export async function say({ text, once, thread, agent }: Message): Promise<Accepted> {
  const reading = new AbortController();
  const body = { message: text, thread_id: thread, agent: thread ? undefined : agent };
  const headers = { accept: "text/event-stream" };
  const answer = await send("post", "/api/chat", { body, once, headers, signal: reading.signal });
  const line = await lineOf(answer).catch(() => 0);
  reading.abort();
  return { thread: answer.headers.get("x-thread-id") ?? "", line };
}

/** The stream begins with where it stands: at the message. */
async function lineOf(answer: Response): Promise<number> {
  const cutter = new Cutter();
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  while (reader && !cutter.lastId) {
    const { done, value } = await reader.read();
    if (done) return 0;
    cutter.take(value);
  }
  return Number.parseInt(cutter.lastId, 10) || 0;
}
