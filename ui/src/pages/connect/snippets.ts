import claudeCode from "./snippets/claude_code.txt?raw";
import curl from "./snippets/curl.txt?raw";
import langgraph from "./snippets/langgraph.txt?raw";
import mcp from "./snippets/mcp.txt?raw";
import openaiAgents from "./snippets/openai_agents.txt?raw";
import python from "./snippets/python.txt?raw";

/** What connects one kind of agent. tests/journeys/test_connect_snippets.py runs what can run without a model. */
export interface Snippet {
  id: string;
  name: string;
  /** The file that the text goes into, or what it is. */
  file: string;
  text: string;
  /** Run in a checkout: the package is in no index yet. */
  install?: string;
  /** What is to be known before it works. */
  note?: string;
  /** The text as it has to be for a server on another machine without TLS; null if that is refused. */
  insecure: ((text: string) => string) | null;
}

export interface Connection {
  server: string;
  agent: string;
  key: string;
}

/** What the texts name, so that each is complete as it is. */
const EXAMPLE: Connection = { server: "http://localhost:8321", agent: "my-agent", key: "ilk_your_key" };
const PLACEHOLDERS = new RegExp(Object.values(EXAMPLE).join("|"), "g");

const WHERE =
  "If the client does not find interlock, give its full path: the bin folder of that environment.";

const allowInProgram = (text: string) => text.replace(/^( *)key="[^"]*",\n/m, "$&$1insecure=True,\n");

export const SNIPPETS: Snippet[] = [
  {
    id: "python",
    name: "Python",
    file: "agent.py",
    text: python,
    install: "pip install '.[client]'",
    insecure: allowInProgram,
  },
  {
    id: "langgraph",
    name: "LangGraph",
    file: "agent.py",
    text: langgraph,
    install: "pip install '.[client,langchain]'",
    insecure: allowInProgram,
  },
  {
    id: "openai-agents",
    name: "OpenAI Agents",
    file: "agent.py",
    text: openaiAgents,
    install: "pip install '.[client,openai-agents]'",
    insecure: allowInProgram,
  },
  {
    id: "mcp",
    name: "MCP",
    file: "The MCP client's configuration",
    text: mcp,
    install: "pip install '.[client,mcp]'",
    note: `Put your own MCP server after "--", and its tools that only read after "--reads". ${WHERE}`,
    insecure: null,
  },
  {
    id: "claude-code",
    name: "Claude Code",
    file: "~/.claude/settings.json",
    text: claudeCode,
    install: "pip install '.[client]'",
    note: `Needs Claude Code 2.1.295 or newer. ${WHERE}`,
    insecure: (text) => text.replaceAll("interlock hook ", "interlock hook --insecure "),
  },
  {
    id: "curl",
    name: "curl",
    file: "In a terminal",
    text: curl,
    note: "For agents in any language. To wait for the decision, start and finish the call, see the HTTP reference.",
    insecure: (text) => text,
  },
];

/** The names of agents that the texts may hold: they are put into programs and commands as they are. */
export const AGENT_NAME = /^[A-Za-z0-9_-]{1,58}$/;

/** The text for this server, agent and key. Without a key, or with any other name, it keeps the placeholder. */
export function renderSnippet(snippet: Snippet, { server, agent, key }: Connection): string {
  const values = new Map([
    [EXAMPLE.server, server],
    [EXAMPLE.agent, AGENT_NAME.test(agent) ? agent : EXAMPLE.agent],
    [EXAMPLE.key, key || EXAMPLE.key],
  ]);
  const text = snippet.text.replace(PLACEHOLDERS, (found) => values.get(found) ?? found); // in one pass: no value is replaced again
  return snippet.insecure && isInsecure(server) ? snippet.insecure(text) : text;
}

/** Whether keys and arguments could be read on their way to this server. */
export function isInsecure(server: string): boolean {
  const { protocol, hostname } = new URL(server);
  const isLocal = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  return protocol === "http:" && !isLocal;
}

type TokenKind = "" | "string" | "word" | "note" | "key";

const TOKEN =
  /("""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|# .*|\b(?:import|from|async|await|def|return|if|for|in|or|print)\b)/;

/** The parts of a text with what they are, for colors; the key stands out. */
export function highlight(text: string, key: string): { kind: TokenKind; text: string }[] {
  const parts = text.split(TOKEN).map((part, index) => ({ part, isToken: index % 2 === 1 }));
  return parts.flatMap(({ part, isToken }) =>
    part ? [{ kind: isToken ? kindOf(part, key) : "", text: part }] : [],
  );
}

function kindOf(token: string, key: string): TokenKind {
  if (token.includes(key || EXAMPLE.key)) return "key";
  if (token.startsWith('"')) return "string";
  return token.startsWith("#") ? "note" : "word";
}
