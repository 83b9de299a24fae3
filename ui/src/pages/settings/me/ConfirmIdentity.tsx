import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { callApi } from "../../../api/client";
import { useMe } from "../../../api/currentUser";
import { Dialog } from "../../../components/Dialog";
import { useSendMutation } from "../../../components/mutations";
import { ErrorMessage, Loading } from "../../../components/States";
import * as messages from "./messages";

/** A link could be sent by somebody else: confirming it would let them decide in the user's name. */
export default function ConfirmIdentity({ link, onClose }: { link: string; onClose: () => void }) {
  const me = useMe().data;
  const claim = useQuery({
    queryKey: ["claim", link],
    queryFn: ({ signal }) => callApi("post", "/api/me/identities/look", { body: { link }, signal }),
    retry: false,
    staleTime: Infinity,
  });
  const bind = useSendMutation(
    (_: void, idempotencyKey) => callApi("post", "/api/me/identities", { body: { link }, idempotencyKey }),
    ["identities"],
    onClose,
  );
  const known = claim.data?.user;
  return (
    <Dialog
      title={claim.data ? messages.isThisYouIn(claim.data.channel) : messages.isThisYou}
      onClose={onClose}
    >
      {claim.isPending && <Loading />}
      {claim.error && <ErrorMessage error={claim.error} />}
      {claim.data && (
        <Stack gap="sm">
          <Text>
            {messages.ownerOf} <code>{claim.data.outside}</code> {messages.inWillDecideAs(claim.data.channel)}{" "}
            <strong>{me?.name}</strong>.
          </Text>
          {known && known !== me?.name && (
            <Alert color="red" title={messages.belongsToSomebodyElse}>
              {messages.belongsTo(known)}
            </Alert>
          )}
          <Alert color="orange" title={messages.onlyIfYouRequestedThisLink}>
            {messages.sayYesIf(claim.data.channel)}
          </Alert>
          {bind.error && <ErrorMessage error={bind.error} />}
          <Group>
            <Button
              onClick={() => bind.mutate()}
              loading={bind.isPending}
              disabled={Boolean(known && known !== me?.name)}
            >
              {messages.yesThisIsMe}
            </Button>
            <Button variant="default" onClick={onClose} autoFocus>
              {messages.no}
            </Button>
          </Group>
        </Stack>
      )}
    </Dialog>
  );
}
