import { useState } from "react";
import type { OpenRequest } from "./transcriptItems";

/** What a text would be when it is sent now. */
export interface Recipient {
  kind: "message" | "question" | "instruction";
  /** The open request that a question is about; empty for all else. */
  approval: string;
  tool: string;
  choose: (kind: "question" | "instruction") => void;
  chooseRequest: (approval: string) => void;
}

const NOTHING_CHOSEN = { requests: "", kind: "question" as "question" | "instruction", approval: "" };

/**
 * While requests are open, a text is a question about the first of them until the person chooses otherwise. A choice
 * holds for the requests that were open then: it must not withdraw another one.
 */
export function useRecipient(requests: OpenRequest[]): Recipient {
  const key = requests.map(({ approval }) => approval).join();
  const [stored, setStored] = useState(NOTHING_CHOSEN);
  const choice = stored.requests === key ? stored : { ...NOTHING_CHOSEN, approval: stored.approval };
  const about = requests.find(({ approval }) => approval === choice.approval) ?? requests[0];
  const kind = about ? choice.kind : "message";
  return {
    kind,
    approval: kind === "question" && about ? about.approval : "",
    tool: about?.tool ?? "",
    choose: (chosen) => setStored({ ...choice, requests: key, kind: chosen }),
    chooseRequest: (approval) => setStored({ requests: key, kind: "question", approval }),
  };
}
