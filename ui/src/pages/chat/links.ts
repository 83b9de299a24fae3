export interface Link {
  href: string;
  /** Where it leads, with look-alike letters as punycode. */
  host: string;
}

/** An address of the web, with its host; null for everything else, and for what would lead into this page. */
export function linkOf(address: string | undefined): Link | null {
  if (!address || !/^https?:\/\//i.test(address) || !URL.canParse(address)) return null;
  const url = new URL(address);
  return { href: url.href, host: url.host };
}
