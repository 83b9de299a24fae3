import { Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { permission, switchOff, switchOn, type Permission } from "../../../live/notify";
import { Section } from "../Section";

const SAYS: Record<Permission, string> = {
  on: "On, in this browser. You hear of what waits for you and is on none of your screens.",
  off: "Off, in this browser.",
  denied:
    "This browser was told to show none. Allow them in its settings for this site, then come back here.",
  impossible: "This browser cannot show notifications here.",
};

/** The browser asks only after a click on this button. */
export function Notifications() {
  const [now, setNow] = useState(permission);
  return (
    <Section title="Notifications" about="One sentence, never the arguments. A click opens the request.">
      <Group justify="space-between">
        <Text role="status">{SAYS[now]}</Text>
        {now === "off" && <Button onClick={() => void switchOn().then(setNow)}>Turn on notifications</Button>}
        {now === "on" && (
          <Button variant="default" onClick={() => setNow(switchOff())}>
            Turn off notifications
          </Button>
        )}
      </Group>
    </Section>
  );
}
