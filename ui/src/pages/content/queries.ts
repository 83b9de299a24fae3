import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { callApi, type Schemas } from "../../api/client";
import type { ContentKind } from "./contentKinds";

export type PostDetails = Schemas["PostDetails"];
export type PageDetails = Schemas["PageDetails"];
export type ImageDetails = Schemas["ImageDetails"];
export type ContentStatus = PostDetails["status"];
export type SectionInfo = Schemas["SectionInfo"];

export interface ContentFilters {
  q: string;
  status: ContentStatus | "";
  /** Only what nobody has viewed since then. */
  notViewedSince?: string;
  sort: "name" | "updated" | "viewed";
}

/** A row of any of the lists. */
export interface ContentRow {
  id: string;
  title: string;
  status?: ContentStatus;
  views?: number;
  lastViewedAt?: string | null;
  usedIn?: string[];
  updatedAt: string;
}

const PAGE_SIZE = 100;

export function useContentList(kind: ContentKind, filters: ContentFilters) {
  return useInfiniteQuery({
    queryKey: ["content", kind, filters],
    queryFn: ({ pageParam, signal }) => readRows(kind, filters, pageParam, signal),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: (before) => before,
  });
}

interface RowPage {
  items: ContentRow[];
  next?: string | null;
}

async function readRows(
  kind: ContentKind,
  { q, status, notViewedSince, sort }: ContentFilters,
  cursor: string,
  signal: AbortSignal,
): Promise<RowPage> {
  const page = { q, cursor, limit: PAGE_SIZE };
  if (kind === "images") {
    const { items, next } = await callApi("get", "/api/content/images", { query: page, signal });
    return { items: items.map(imageRow), next };
  }
  const query = { ...page, status, sort, not_viewed_since: notViewedSince };
  const { items, next } =
    kind === "posts"
      ? await callApi("get", "/api/content/posts", { query, signal })
      : await callApi("get", "/api/content/pages", { query, signal });
  return { items: items.map(contentRow), next };
}

function contentRow(item: Schemas["PostInfo"] | Schemas["PageInfo"]): ContentRow {
  const { slug, title, status, views, last_viewed_at, updated_at } = item;
  return { id: slug, title, status, views, lastViewedAt: last_viewed_at, updatedAt: updated_at };
}

function imageRow({ id, name, used_in, updated_at }: Schemas["ImageInfo"]): ContentRow {
  return { id, title: name, usedIn: used_in, updatedAt: updated_at };
}

export function usePost(slug: string) {
  return useQuery({
    queryKey: ["content", "posts", "one", slug],
    queryFn: ({ signal }) => callApi("get", "/api/content/posts/{slug}", { path: { slug }, signal }),
  });
}

export function usePage(slug: string) {
  return useQuery({
    queryKey: ["content", "pages", "one", slug],
    queryFn: ({ signal }) => callApi("get", "/api/content/pages/{slug}", { path: { slug }, signal }),
  });
}

export function useImage(id: string) {
  return useQuery({
    queryKey: ["content", "images", "one", id],
    queryFn: ({ signal }) =>
      callApi("get", "/api/content/images/{image_id}", { path: { image_id: id }, signal }),
  });
}
