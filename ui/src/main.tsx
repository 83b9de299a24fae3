import "@mantine/core/styles.css";
import "./App.css";
import "./api/uuid";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { isOutdatedBuild } from "./components/ErrorBoundary";

const root = document.getElementById("root");
if (root)
  createRoot(root, { onCaughtError: note }).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );

/** A page that was updated on the server is no fault; its boundary says what to do. */
function note(error: unknown): void {
  if (isOutdatedBuild(error)) console.warn(error);
  else console.error(error);
}
