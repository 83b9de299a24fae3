import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const SERVER = process.env.INTERLOCK_SERVER ?? "http://127.0.0.1:8321";
const ITS_OWN = ["/api", "/docs", "/docs.css", "/openapi.json", "/auth", "/healthz", "/readyz", "/metrics"];

const PACKAGE = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;

// named by style sheets, which are no modules
const FONTS = ["inter", "jetbrains-mono"].map((name) =>
  join(import.meta.dirname, "node_modules/@fontsource-variable", name),
);

/** The licences of the packages that are in the page, fonts among them: most ask that their text goes with them. */
function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle() {
      const folders = [...this.getModuleIds()].flatMap(
        (id) => PACKAGE.exec(id.replaceAll("\\", "/"))?.[0] ?? [],
      );
      const texts = [...new Set([...folders, ...FONTS])].map(licenceOf).sort();
      const source = `What this page contains, and its licences.\n\n${texts.join("\n\n")}`;
      this.emitFile({ type: "asset", fileName: "licences.txt", source });
    },
  };
}

function licenceOf(folder: string): string {
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, unknown>;
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
  const text = files.map((file) => readFileSync(join(folder, file), "utf8").trim()).join("\n\n");
  return `==== ${String(about.name)} ${String(about.version)} (${String(about.license)})\n\n${text || "Its package has no licence file."}`;
}

export default defineConfig({
  plugins: [react(), licences()],
  html: { cspNonce: "[NONCE]" }, // the server puts a new one into each page
  build: {
    outDir: "../src/interlock/server/ui",
    emptyOutDir: true,
    cssTarget: ["chrome123", "firefox120", "safari17.5"], // these know light-dark(); what it is turned into for others breaks
    assetsInlineLimit: 0, // data: addresses would need room in the content-security policy
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      optimization: { inlineConst: true }, // a text of a catalogue goes where it is shown
      output: {
        codeSplitting: {
          // What most pages share is one file: forty small ones compress worse.
          groups: [
            { name: "common", minShareCount: 12, priority: 2 },
            {
              name: "card",
              test: /src\/card\/|RiskMark|icons|usePersonName|tabler/,
              minShareCount: 5,
              priority: 1,
            },
          ],
        },
      },
    },
  },
  server: {
    host: "127.0.0.1",
    port: 8322,
    proxy: Object.fromEntries(ITS_OWN.map((path) => [path, { target: SERVER }])),
  },
});
