/** Where a card is shown. */
export type Place = "chat" | "inbox" | "page" | "modal";
