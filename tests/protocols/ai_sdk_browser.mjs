// A browser with chat pages as people write them: useChat, unmodified, in React; told what to do line by line.
import { createInterface } from "node:readline";
import { JSDOM } from "jsdom";

const job = JSON.parse(process.argv[2]);
const dom = new JSDOM("", { url: "http://page.example/", pretendToBeVisual: true });
globalThis.window = dom.window;
globalThis.document = dom.window.document;

const { createElement: h } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useChat } = await import("@ai-sdk/react");
const ai = await import("ai");

const pages = new Map();

function Page({ page }) {
  const chat = useChat({
    id: page.chat,
    messages: page.messages,
    resume: page.resume,
    transport: new ai.DefaultChatTransport({
      api: `${job.url}/ai-sdk/chat`,
      headers: { authorization: `Bearer ${page.key}` },
      body: page.body,
      prepareSendMessagesRequest: page.short ? newestAlone : undefined,
      fetch: (url, init) => {
        page.requests.push(init.method === "POST" ? JSON.parse(init.body) : null);
        return fetch(url, init);
      },
    }),
    sendAutomaticallyWhen: (given) =>
      ai.lastAssistantMessageIsCompleteWithApprovalResponses(given) ||
      ai.lastAssistantMessageIsCompleteWithToolCalls(given),
  });
  page.now = chat;
  return chat.messages.flatMap((message) => message.parts.map((part, n) => h(Part, { key: `${message.id} ${n}`, part, chat })));
}

function newestAlone({ body, id, messages, trigger, messageId }) {
  return { body: { ...body, id, trigger, messageId, messages: messages.slice(-1) } };
}

function Part({ part, chat }) {
  if (part.type === "text") return h("p", null, part.text);
  if (part.state !== "approval-requested") return null;
  const answer = (approved) => () =>
    chat.addToolApprovalResponse({ id: part.approval.id, approved, reason: approved ? undefined : "Not today." });
  return h("div", { "data-tool": part.toolName }, [
    h("button", { key: "yes", className: "yes", onClick: answer(true) }),
    h("button", { key: "no", className: "no", onClick: answer(false) }),
  ]);
}

function shown(page) {
  const { status, error, messages } = page.now;
  const text = page.element.textContent;
  return { status, error: error?.message ?? null, messages, text, requests: page.requests.length };
}

const doing = {
  open(wanted) {
    const element = document.body.appendChild(document.createElement("main"));
    const page = { ...wanted, element, requests: [] };
    createRoot(element).render(h(Page, { page }));
    return page;
  },
  look: () => undefined,
  say: (page, { text, options }) => void page.now.sendMessage({ text }, options),
  send: (page, { message, options }) => void page.now.sendMessage(message, options),
  click: (page, { selector }) => page.element.querySelector(selector).click(),
  answer: (page, { given }) => void page.now.addToolApprovalResponse(given),
  output: (page, { given }) => void page.now.addToolOutput(given),
  resume: (page) => void page.now.resumeStream(),
  regenerate: (page) => void page.now.regenerate(),
  stop: (page) => void page.now.stop(),
  requests: (page) => page.requests,
};

async function rendered(page) {
  while (page.now === undefined) await new Promise((done) => setTimeout(done, 5));
  return shown(page);
}

for await (const line of createInterface({ input: process.stdin })) {
  const wanted = JSON.parse(line);
  try {
    if (wanted.do === "open") pages.set(wanted.page, doing.open(wanted));
    const page = pages.get(wanted.page);
    const told = wanted.do === "open" ? undefined : doing[wanted.do](page, wanted);
    console.log(JSON.stringify(wanted.do === "requests" ? told : await rendered(page)));
  } catch (error) {
    console.log(JSON.stringify({ failed: String(error) }));
  }
}
process.exit(0);
