import { Button, Text } from "@mantine/core";
import { useState } from "react";
import css from "./Card.module.css";
import { Words } from "./Text";

const SHORT = 1_500;
const MOST = 50_000;

/** What a tool or a person gave: its beginning, and on request as much of it as a page can take. */
export function Long({ label, text }: { label: string; text: string }) {
  const [whole, setWhole] = useState(false);
  const shown = text.slice(0, whole ? MOST : SHORT);
  return (
    <div>
      <Text size="sm" fw={600} mt={6}>
        {label}
      </Text>
      <div className={css.raw}>
        <Words text={shown} />
        {shown.length < text.length && " …"}
      </div>
      {!whole && shown.length < text.length && (
        <Button variant="default" size="compact-sm" mt={6} onClick={() => setWhole(true)}>
          Show {Math.min(MOST, text.length).toLocaleString("en")} of {text.length.toLocaleString("en")}{" "}
          characters
        </Button>
      )}
    </div>
  );
}
