import { Button, Menu, Text, useMantineColorScheme } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { CurrentUser } from "../api/currentUser";
import { signOut } from "../live/session";

interface UserMenuProps {
  me: CurrentUser;
  className?: string;
  /** Before the name on the button. */
  children?: ReactNode;
}

/** Appearance settings and sign-out. */
export default function UserMenu({ me, className, children }: UserMenuProps) {
  const { setColorScheme } = useMantineColorScheme();
  const endSession = useMutation({ mutationFn: () => signOut("here") });
  return (
    <Menu defaultOpened position="top-start" withinPortal={false} withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <Button className={className} variant="subtle" color="gray">
          {children}
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
        <Menu.Item
          closeMenuOnClick={false}
          onClick={() => endSession.mutate()}
          disabled={endSession.isPending}
        >
          Sign out
        </Menu.Item>
        {endSession.error && (
          <Text size="sm" px="sm" pb="xs" maw={240} role="alert">
            You are still signed in. {endSession.error.message}
          </Text>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
