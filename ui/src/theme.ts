import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from "@mantine/core";

const indigo: MantineColorsTuple = [
  "#eef0fe",
  "#dde0fd",
  "#c5caf6",
  "#a9b1f3",
  "#98a2ff",
  "#7681ee",
  "#6470e8",
  "#4f5be0",
  "#3d46c8",
  "#2a32a4",
];

export const theme = createTheme({
  colors: { indigo },
  primaryColor: "indigo",
  primaryShade: { light: 8, dark: 7 },
  autoContrast: true,
  defaultRadius: "md",
  cursorType: "pointer",
  respectReducedMotion: true,
  radius: { sm: "6px", md: "8px", lg: "12px" },
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "21px" },
  lineHeights: { xs: "16px", sm: "20px", md: "20px", lg: "24px", xl: "28px" },
  fontFamily: "'Inter Variable', system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  fontFamilyMonospace:
    "'JetBrains Mono Variable', ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
  headings: {
    fontWeight: "650",
    sizes: {
      h1: { fontSize: "20px", lineHeight: "28px" },
      h2: { fontSize: "16px", lineHeight: "24px" },
      h3: { fontSize: "14px", lineHeight: "20px" },
      h4: { fontSize: "13px", lineHeight: "20px" },
    },
  },
});

/** Text colors with AA contrast on white and on their own tint, unlike the library's. */
const READABLE = {
  green: "#216e30",
  teal: "#06664a",
  lime: "#466412",
  cyan: "#0a6472",
  orange: "#a83808",
  yellow: "#8a4b00",
};

/** The library's variables, by the names of tokens.css. */
const TOKENS = {
  "--mantine-color-body": "var(--surface)",
  "--mantine-color-text": "var(--text)",
  "--mantine-color-dimmed": "var(--muted)",
  "--mantine-color-placeholder": "var(--faint)",
  "--mantine-color-default": "var(--surface)",
  "--mantine-color-default-hover": "var(--hover)",
  "--mantine-color-default-color": "var(--text)",
  "--mantine-color-default-border": "var(--line-strong)",
};

export const themeVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    ...TOKENS,
    "--mantine-color-error": "var(--mantine-color-red-9)",
    ...Object.fromEntries(
      Object.entries(READABLE).flatMap(([name, color]) => [
        [`--mantine-color-${name}-text`, color],
        [`--mantine-color-${name}-light-color`, color],
        [`--mantine-color-${name}-outline`, color],
      ]),
    ),
  },
  dark: {
    ...TOKENS,
    "--mantine-color-error": "var(--mantine-color-red-4)",
    // White text on the library's red of this scheme has a contrast of 3.84.
    "--mantine-color-red-filled": "var(--mantine-color-red-9)",
    "--mantine-color-red-filled-hover": "var(--mantine-color-red-8)",
  },
});

/** The nonce for <style> tags of libraries; the content-security policy allows no others. */
export function styleNonce(): string {
  return document.querySelector<HTMLElement>("script[nonce], link[nonce]")?.nonce ?? "";
}
