import "@mantine/core/styles.css";
import "./tokens.css";
import "./App.css";
import "./api/uuid";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { isOutdatedBuild } from "./components/ErrorBoundary";

const root = document.getElementById("root");
if (root)
  createRoot(root, { onCaughtError: logError }).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );

/** An outdated build is not an error; the error boundary says what to do. */
function logError(error: unknown): void {
  if (isOutdatedBuild(error)) console.warn(error);
  else console.error(error);
}
