import { TextInput } from "@mantine/core";
import { useRef, type FormEvent, type ReactNode } from "react";
import { useAddressFilters } from "../../components/useAddressFilters";
import css from "./History.module.css";
import * as messages from "./messages";

interface FilterFormProps {
  label: string;
  /** The names of the fields, as in the URL. */
  names: readonly string[];
  children: (filters: AddressFilters) => ReactNode;
}

interface AddressFilters {
  get: (name: string) => string;
  /** Applies what the fields hold. */
  send: () => void;
  clear: () => void;
}

/** Filters that are part of the URL; applied explicitly, or by a selection. */
export function FilterForm({ label, names, children }: FilterFormProps) {
  const [get, set] = useAddressFilters();
  const form = useRef<HTMLFormElement>(null);
  const send = () => {
    const formData = new FormData(form.current ?? undefined);
    set(Object.fromEntries(names.map((name) => [name, String(formData.get(name) ?? "").trim()])));
  };
  const clear = () => set(Object.fromEntries(names.map((name) => [name, ""])));
  return (
    <form
      ref={form}
      role="search"
      aria-label={label}
      className={css.filters}
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        send();
      }}
      key={names.map(get).join("\n")}
    >
      {children({ get, send, clear })}
    </form>
  );
}

/** The first and the last day. */
export function DayFields({ get, onChange }: Pick<AddressFilters, "get"> & { onChange?: () => void }) {
  const field = (name: string, label: string) => (
    <TextInput
      className={css.narrow}
      name={name}
      type="date"
      label={label}
      defaultValue={get(name)}
      onChange={onChange}
    />
  );
  return (
    <>
      {field("since", messages.from)}
      {field("until", messages.to)}
    </>
  );
}
