import { Tabs } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useSearchParams } from "wouter";
import { Page } from "../../parts/page";
import { Loading } from "../../parts/states";
import { Calls } from "./calls";

const Ledger = lazy(() => import("./ledger"));

/** What became of every call, and the record that proves it. */
export default function History() {
  const [params, setParams] = useSearchParams();
  const tab = params.get("tab") === "ledger" ? "ledger" : "calls";
  return (
    <Page title="History">
      <Tabs
        value={tab}
        onChange={(next) => setParams(next === "ledger" ? { tab: "ledger" } : {})}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="calls" mih={44}>
            Calls
          </Tabs.Tab>
          <Tabs.Tab value="ledger" mih={44}>
            Ledger
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
