import { Button, NativeSelect } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../api/client";
import { useMe } from "../api/me";
import css from "./Card.module.css";
import type { Held } from "./held";

/** Lets another person or a team decide in one's place: their vote counts in one's own seat. */
export function Delegate({ held }: { held: Held }) {
  const [to, setTo] = useState("");
  const me = useMe().data;
  const users = useQuery({
    queryKey: ["users"],
    queryFn: ({ signal }) => call("get", "/api/users", { signal }),
  });
  const others = (users.data?.items ?? []).filter(({ name, role }) => name !== me?.name && role !== "viewer");
  const teams = [...new Set((users.data?.items ?? []).flatMap((user) => user.teams))].sort();
  const send = () => {
    const [kind, ...name] = to.split(" ");
    held.move("delegate", { [kind === "team" ? "teams" : "users"]: [name.join(" ")] }, () => setTo(""));
  };
  return (
    <form
      className={css.line}
      onSubmit={(event) => {
        event.preventDefault();
        if (to && !held.sending) send();
      }}
    >
      <NativeSelect
        className={css.grow}
        label="Let somebody else decide"
        value={to}
        onChange={(event) => setTo(event.currentTarget.value)}
      >
        <option value="">Choose</option>
        {others.map(({ name }) => (
          <option key={name} value={`user ${name}`}>
            {name}
          </option>
        ))}
        {teams.map((name) => (
          <option key={name} value={`team ${name}`}>
            team {name}
          </option>
        ))}
      </NativeSelect>
      <Button
        type="submit"
        variant="default"
        className={css.wide}
        disabled={!to}
        loading={held.sending === "delegate"}
      >
        Delegate
      </Button>
    </form>
  );
}
