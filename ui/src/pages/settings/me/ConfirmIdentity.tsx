import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { callApi } from "../../../api/client";
import { useMe } from "../../../api/currentUser";
import { Dialog } from "../../../components/Dialog";
import { useSendMutation } from "../../../components/mutations";
import { ErrorMessage, Loading } from "../../../components/States";

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
    <Dialog title={claim.data ? `Is this you in ${claim.data.channel}?` : "Is this you?"} onClose={onClose}>
      {claim.isPending && <Loading />}
      {claim.error && <ErrorMessage error={claim.error} />}
      {claim.data && (
        <Stack gap="sm">
          <Text>
            The owner of <code>{claim.data.outside}</code> in {claim.data.channel} will decide as{" "}
            <strong>{me?.name}</strong>.
          </Text>
          {known && known !== me?.name && (
            <Alert color="red" title="This account belongs to somebody else">
              It belongs to {known}. They or an admin must remove it first.
            </Alert>
          )}
          <Alert color="orange" title="Only if you requested this link">
            Say yes if you pressed a button in {claim.data.channel} a moment ago and got this link in
            response. If anybody sent it to you, say no: it would let them decide in your name.
          </Alert>
          {bind.error && <ErrorMessage error={bind.error} />}
          <Group>
            <Button
              onClick={() => bind.mutate()}
              loading={bind.isPending}
              disabled={Boolean(known && known !== me?.name)}
            >
              Yes, this is me
            </Button>
            <Button variant="default" onClick={onClose} autoFocus>
              No
            </Button>
          </Group>
        </Stack>
      )}
    </Dialog>
  );
}
