import { Alert, Button, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { call } from "../../api/client";
import type { Reader } from "./reader";
import type { Ended } from "./story";

/** A turn that did not come to its end, and the way on where there is one. */
export function Ending({ ended, reader }: { ended: Ended; reader: Reader | null }) {
  if (ended.status === "stopped") return <Note text="Stopped." />;
  return (
    <Alert color="red" title={ended.status === "limit" ? "A limit is reached" : "The agent could not go on"}>
      <Text size="sm">{ended.reason}</Text>
      {reader && ended.status !== "limit" && <Retry reader={reader} />}
    </Alert>
  );
}

export function Note({ text }: { text: string }) {
  return (
    <Text size="sm" fs="italic">
      {text}
    </Text>
  );
}

/** From where the thread stands: nothing that was recorded is done again. */
function Retry({ reader }: { reader: Reader }) {
  const retry = useMutation({
    mutationFn: () =>
      call("post", "/api/threads/{thread_id}/retry", { path: { thread_id: reader.id }, body: {} }),
    onSuccess: () => reader.works(),
    onError: () => reader.wake(),
  });
  return (
    <>
      {retry.error && (
        <Text size="sm" role="alert">
          {retry.error.message}
        </Text>
      )}
      <Button mt="xs" mih={44} variant="default" loading={retry.isPending} onClick={() => retry.mutate()}>
        Retry
      </Button>
    </>
  );
}
