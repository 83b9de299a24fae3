import { useQueryClient } from "@tanstack/react-query";
import type { CurrentUser } from "../api/currentUser";
import * as messages from "./messages";

/** What a person is called on the page: oneself "you", or "You" where a sentence begins. */
export function usePersonName(): (name: string, isFirstWord?: boolean) => string {
  // a preview of a card is also shown to people who are not signed in, and asks for nobody
  const me = useQueryClient().getQueryData<CurrentUser>(["me"])?.name;
  return (name, isFirstWord = false) =>
    name === me ? (isFirstWord ? messages.you : messages.youInSentence) : name;
}
