/** One server-sent event, as it came. */
export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

/** Cuts a stream of text into events; what is not whole yet is kept for the next piece. */
export class EventParser {
  private rest = "";
  private id = "";

  take(piece: string): ServerEvent[] {
    this.rest += piece;
    const blocks = this.rest.split(/\r?\n\r?\n/);
    this.rest = blocks.pop() ?? "";
    return blocks.map((block) => this.read(block)).filter((sent) => sent !== null);
  }

  get lastId(): string {
    return this.id;
  }

  private read(block: string): ServerEvent | null {
    let event = "message";
    const data: string[] = [];
    for (const line of block.split(/\r?\n/)) {
      const at = line.indexOf(":");
      const name = at < 0 ? line : line.slice(0, at);
      const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
      if (name === "id") this.id = value;
      else if (name === "event") event = value;
      else if (name === "data") data.push(value);
    }
    return data.length ? { id: this.id, event, data: data.join("\n") } : null;
  }
}

interface StreamOptions {
  url: string;
  after: string;
  signal: AbortSignal;
  /** The head of the answer came: what happens from now on is in the stream. */
  onOpen: () => void;
  onEvent: (sent: ServerEvent) => void;
  /** Also for signs of life, which move the place on without an event. */
  onPlace: (id: string) => void;
}

/** Reads one stream to its end with fetch: EventSource gives up for good on the first refusal. */
export async function readEventStream({
  url,
  after,
  signal,
  onOpen,
  onEvent,
  onPlace,
}: StreamOptions): Promise<number> {
  const headers: Record<string, string> = { accept: "text/event-stream" };
  if (after) headers["last-event-id"] = after;
  const answer = await fetch(url, { headers, signal, credentials: "same-origin", cache: "no-store" });
  if (!answer.ok || !answer.body) return answer.status;
  onOpen();
  const cutter = new EventParser();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return answer.status;
    for (const sent of cutter.take(value)) onEvent(sent);
    if (cutter.lastId) onPlace(cutter.lastId);
  }
}
