import { NativeSelect, TextInput } from "@mantine/core";
import { namesIn, type PersonInfo, type Role } from "../data";

export interface Given {
  role: Role;
  teams: string[];
  email: string;
}

/** What can be said of somebody, for adding and for changing. */
export function PersonFields({ person }: { person?: PersonInfo }) {
  return (
    <>
      <NativeSelect
        name="role"
        label="Role"
        defaultValue={person?.role ?? "reviewer"}
        data={[
          { value: "viewer", label: "viewer: looks, decides nothing" },
          { value: "reviewer", label: "reviewer: decides" },
          { value: "admin", label: "admin: decides, and changes everything" },
        ]}
      />
      <TextInput
        name="teams"
        label="Teams"
        description="Separated by commas. Rules can name teams as approvers."
        defaultValue={person?.teams.join(", ")}
      />
      <TextInput
        name="email"
        type="email"
        label="E-mail address"
        description="For signing in by your organisation's provider, if there is one."
        defaultValue={person?.email ?? ""}
      />
    </>
  );
}

export function givenIn(form: HTMLFormElement): Given {
  const given = new FormData(form);
  return {
    role: String(given.get("role")) as Role,
    teams: namesIn(String(given.get("teams"))),
    email: String(given.get("email")).trim(),
  };
}
