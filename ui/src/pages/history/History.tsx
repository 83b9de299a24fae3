import { Tabs, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { useSearchParams } from "wouter";
import { callApi } from "../../api/client";
import { Page } from "../../components/Page";
import { Loading } from "../../components/States";
import { Calls } from "./Calls";
import * as messages from "./messages";

const Ledger = lazy(() => import("./Ledger"));

/** All calls, and the ledger. */
export default function History() {
  const [params, setParams] = useSearchParams();
  const tab = params.get("tab") === "ledger" ? "ledger" : "calls";
  return (
    <Page title={messages.history} opened={tab === "ledger" ? messages.ledger : messages.history}>
      <Retention />
      <Tabs
        value={tab}
        onChange={(next) => setParams(next === "ledger" ? { tab: "ledger" } : {})}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="calls" mih={44}>
            {messages.calls}
          </Tabs.Tab>
          <Tabs.Tab value="ledger" mih={44}>
            {messages.ledger}
          </Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="calls">
          <Calls />
        </Tabs.Panel>
        <Tabs.Panel value="ledger">
          <Suspense fallback={<Loading />}>
            <Ledger />
          </Suspense>
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

/** A note on retention: missing content was erased, not lost. */
function Retention() {
  const about = useQuery({
    queryKey: ["about", "retention"],
    queryFn: ({ signal }) => callApi("get", "/api/about", { signal }),
    staleTime: Infinity,
  });
  if (!about.data || about.data.retention === "forever") return null;
  return (
    <Text size="sm" c="dimmed" mb="sm">
      {messages.contentIsErasedAfter(about.data.retention)}
    </Text>
  );
}
