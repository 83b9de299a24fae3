/** A server-sent event. */
export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

/** Parses a text stream into events; incomplete events are buffered. */
export class EventParser {
  private buffer = "";
  private id = "";

  push(piece: string): ServerEvent[] {
    this.buffer += piece;
    const blocks = this.buffer.split(/\r?\n\r?\n/);
    this.buffer = blocks.pop() ?? "";
    return blocks.map((block) => this.parseBlock(block)).filter((sent) => sent !== null);
  }

  get lastId(): string {
    return this.id;
  }

  private parseBlock(block: string): ServerEvent | null {
    let event = "message";
    const data: string[] = [];
    for (const line of block.split(/\r?\n/)) {
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
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
  /** The response has started: later events are in the stream. */
  onOpen: () => void;
  onEvent: (sent: ServerEvent) => void;
  /** Also called for keep-alives, which advance the position without an event. */
  onPosition: (id: string) => void;
}

/** Reads one stream to its end with fetch: EventSource never reconnects after an error response. */
export async function readEventStream({
  url,
  after,
  signal,
  onOpen,
  onEvent,
  onPosition,
}: StreamOptions): Promise<number> {
  const headers: Record<string, string> = { accept: "text/event-stream" };
  if (after) headers["last-event-id"] = after;
  const response = await fetch(url, { headers, signal, credentials: "same-origin", cache: "no-store" });
  if (!response.ok || !response.body) return response.status;
  onOpen();
  const parser = new EventParser();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return response.status;
    for (const sent of parser.push(value)) onEvent(sent);
    if (parser.lastId) onPosition(parser.lastId);
  }
}
