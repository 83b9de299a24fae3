import { TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useEffect, useState } from "react";
import { useAddressFilters } from "./useAddressFilters";

/** A search that becomes `q` in the URL once the person stops typing. */
export function SearchField({ label }: { label: string }) {
  const [get, set] = useAddressFilters();
  const [typed, setTyped] = useState(get("q"));
  const [q] = useDebouncedValue(typed.trim(), 250);
  useEffect(() => set({ q }), [q, set]);
  return (
    <TextInput
      label={label}
      type="search"
      maxLength={200}
      value={typed}
      onChange={(event) => setTyped(event.currentTarget.value)}
    />
  );
}
