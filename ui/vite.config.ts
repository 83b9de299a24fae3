import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const SERVER = process.env.INTERLOCK_SERVER ?? "http://127.0.0.1:8321";
const ITS_OWN = ["/api", "/docs", "/docs.css", "/openapi.json", "/auth", "/healthz", "/readyz", "/metrics"];

export default defineConfig({
  plugins: [react()],
  html: { cspNonce: "[NONCE]" }, // the server puts a new one into each page
  build: {
    outDir: "../src/interlock/server/ui",
    emptyOutDir: true,
    cssTarget: ["chrome123", "firefox120", "safari17.5"], // these know light-dark(); what it is turned into for others breaks
    assetsInlineLimit: 0, // data: addresses would need room in the content-security policy
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
  },
  server: {
    host: "127.0.0.1",
    port: 8322,
    proxy: Object.fromEntries(ITS_OWN.map((path) => [path, { target: SERVER }])),
  },
});
