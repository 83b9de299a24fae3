import { Checkbox, Fieldset, TextInput } from "@mantine/core";
import { useState } from "react";
import css from "./Settings.module.css";

const MANY = 12;

interface PicksProps {
  legend: string;
  names: string[];
  picked: string[];
  onPick: (picked: string[]) => void;
}

/** Some of many names; what is picked stays in sight whatever is looked for. */
export function Picks({ legend, names, picked, onPick }: PicksProps) {
  const [wanted, setWanted] = useState("");
  const found = names.filter(
    (name) => picked.includes(name) || name.toLowerCase().includes(wanted.toLowerCase()),
  );
  if (!names.length) return null;
  return (
    <Fieldset legend={legend} p="sm">
      {names.length > MANY && (
        <TextInput
          aria-label={`Find: ${legend}`}
          placeholder="Find"
          value={wanted}
          onChange={(event) => setWanted(event.currentTarget.value)}
          mb="xs"
        />
      )}
      <div className={css.picks}>
        {found.map((name) => (
          <Checkbox
            key={name}
            label={name}
            py={6}
            checked={picked.includes(name)}
            onChange={(event) =>
              onPick(
                event.currentTarget.checked ? [...picked, name] : picked.filter((other) => other !== name),
              )
            }
          />
        ))}
      </div>
    </Fieldset>
  );
}
