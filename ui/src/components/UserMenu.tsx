import { Button, Menu, Text, useMantineColorScheme } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { CurrentUser } from "../api/currentUser";
import { signOut } from "../live/session";
import * as messages from "./dialogMessages";

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
        <Menu.Label>{messages.roleInWorkspace(me.role, me.workspace)}</Menu.Label>
        <Menu.Item component={Link} href="/settings/me">
          {messages.mySettings}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Label>{messages.appearance}</Menu.Label>
        <Menu.Item onClick={() => setColorScheme("light")}>{messages.light}</Menu.Item>
        <Menu.Item onClick={() => setColorScheme("dark")}>{messages.dark}</Menu.Item>
        <Menu.Item onClick={() => setColorScheme("auto")}>{messages.system}</Menu.Item>
        <Menu.Divider />
        <Menu.Item
          closeMenuOnClick={false}
          onClick={() => endSession.mutate()}
          disabled={endSession.isPending}
        >
          {messages.signOut}
        </Menu.Item>
        {endSession.error && (
          <Text size="sm" px="sm" pb="xs" maw={240} role="alert">
            {messages.youAreStillSignedIn(endSession.error.message)}
          </Text>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
