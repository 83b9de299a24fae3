import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from "@mantine/core";

const steel: MantineColorsTuple = [
  "#eef5fa",
  "#dbe8f1",
  "#b4d0e4",
  "#8ab6d6",
  "#68a1cb",
  "#5294c4",
  "#448dc2",
  "#357aac",
  "#2a6c9b",
  "#1f5f8b",
];

export const theme = createTheme({
  colors: { steel },
  primaryColor: "steel",
  primaryShade: { light: 9, dark: 8 },
  autoContrast: true,
  defaultRadius: "md",
  cursorType: "pointer",
  respectReducedMotion: true,
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
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

export const themeVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#596067",
    "--mantine-color-placeholder": "#6c757d",
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
    "--mantine-color-dimmed": "#adadad",
    "--mantine-color-placeholder": "#969696",
    "--mantine-color-error": "var(--mantine-color-red-4)",
  },
});

/** The nonce for <style> tags of libraries; the content-security policy allows no others. */
export function styleNonce(): string {
  return document.querySelector<HTMLElement>("script[nonce], link[nonce]")?.nonce ?? "";
}
