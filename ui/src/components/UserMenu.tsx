import { Button, Menu, Text, useMantineColorScheme } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Link } from "wouter";
import type { CurrentUser } from "../api/currentUser";
import { signOut } from "../live/session";

/** How the page looks, and the way out. */
export default function UserMenu({ me }: { me: CurrentUser }) {
  const { setColorScheme } = useMantineColorScheme();
  const leave = useMutation({ mutationFn: () => signOut("here") });
  return (
    <Menu defaultOpened position="bottom-end" withinPortal={false} withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <Button variant="subtle" size="sm" h={44} px="xs" c="inherit">
          {me.name}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {me.role} in {me.workspace}
        </Menu.Label>
        <Menu.Item component={Link} href="/settings/me">
          My settings
        </Menu.Item>
        <Menu.Divider />
        <Menu.Label>Appearance</Menu.Label>
        <Menu.Item onClick={() => setColorScheme("light")}>Light</Menu.Item>
        <Menu.Item onClick={() => setColorScheme("dark")}>Dark</Menu.Item>
        <Menu.Item onClick={() => setColorScheme("auto")}>System</Menu.Item>
        <Menu.Divider />
        <Menu.Item closeMenuOnClick={false} onClick={() => leave.mutate()} disabled={leave.isPending}>
          Sign out
        </Menu.Item>
        {leave.error && (
          <Text size="sm" px="sm" pb="xs" maw={240} role="alert">
            You are still signed in. {leave.error.message}
          </Text>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
