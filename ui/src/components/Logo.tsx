/** The mark: two links of a chain. */
export function Logo({ size = 22 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" fill="none" strokeWidth="2.6" aria-hidden="true">
      <path
        stroke="var(--accent)"
        d="M11.4 15h.1A3.5 3.5 0 0 0 15 11.5v-5A3.5 3.5 0 0 0 11.5 3h-5A3.5 3.5 0 0 0 3 6.5v5A3.5 3.5 0 0 0 6.5 15h.1"
      />
      <path
        stroke="var(--text)"
        d="M12.6 9h-.1A3.5 3.5 0 0 0 9 12.5v5a3.5 3.5 0 0 0 3.5 3.5h5a3.5 3.5 0 0 0 3.5-3.5v-5A3.5 3.5 0 0 0 17.5 9h-.1"
      />
    </svg>
  );
}
