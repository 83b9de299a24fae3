import * as messages from "./messages";

/** The kinds of content, as addresses and the API name them. */
export type ContentKind = "posts" | "pages" | "images";

interface KindWords {
  /** One item, within a sentence. */
  one: string;
  name: string;
  /** What an empty list says. */
  about: string;
}

export const CONTENT_KINDS: Record<ContentKind, KindWords> = {
  posts: { one: messages.post, name: messages.posts, about: messages.emptyPosts },
  pages: { one: messages.page, name: messages.pages, about: messages.emptyPages },
  images: { one: messages.image, name: messages.images, about: messages.emptyImages },
};

export const isContentKind = (name: string): name is ContentKind => Object.hasOwn(CONTENT_KINDS, name);

/** The address on the site that leads to the item. */
export function sitePath(kind: ContentKind, name: string): string {
  return kind === "pages" ? `/${name}` : `/${kind}/${name}`;
}

/** A slug made of a title: "Über uns, kurz" becomes "uber-uns-kurz". */
export function suggestSlug(title: string): string {
  return title
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 80)
    .replace(/-+$/, "");
}

/** The time that lies so many days back, or nothing without a number of days. */
export function daysAgo(days: string, now = Date.now()): string | undefined {
  return days ? new Date(now - Number(days) * 86_400_000).toISOString() : undefined;
}

/** Moves one entry of a list up (-1) or down (1); the ends stay. */
export function moveEntry<T>(entries: readonly T[], from: number, by: -1 | 1): T[] {
  const moved = [...entries];
  const to = from + by;
  const [entry] = moved.splice(from, 1);
  if (entry === undefined || to < 0 || to >= entries.length) return [...entries];
  moved.splice(to, 0, entry);
  return moved;
}

/** An id that no other section has: "section-3". */
export function freeSectionId(ids: readonly string[]): string {
  let number = ids.length + 1;
  while (ids.includes(`section-${number}`)) number += 1;
  return `section-${number}`;
}
