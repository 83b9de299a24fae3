import { render, waitFor } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { parseBlocks } from "./blocks";
import { Markdown, showAddress } from "./Markdown";

const SIZE = 20_000; // as much as is shown at once

const HARD: Record<string, string> = {
  quotations: ">",
  "quotations with spaces": "> ",
  lists: "- ",
  "numbered lists": "1. ",
  brackets: "[",
  images: "![",
  "links in links": "[a](",
  stars: "*",
  "stars and letters": "*a",
  "stars and letters, both ways": "*a_b",
  "stars with spaces": "a **b ",
  ticks: "`a``",
  backslashes: "\\",
  tags: "<a ",
  ampersands: "&amp",
  tabs: "\t",
  "column lines": "|",
  "lines of columns": "|a\n",
  "titles of a table again and again": "a|b\n-|-\n",
  "dashes of a table": "|-\n|-\n",
  "escaped column lines": "\\|",
  tasks: "- [x] ",
  headings: "# ",
  "deeper lists": "",
};

/** Parsing time that grows faster than the text would exceed the test's time limit. */
it.each(Object.entries(HARD))("parses worst-case input: %s", (name, piece) => {
  const text = name === "deeper lists" ? deeper() : piece.repeat(SIZE / piece.length);
  const blocks = parseBlocks(text);
  expect(depthOf(blocks)).toBeLessThan(60);
});

/** Much more than is shown, so that work that grows faster than the text takes far longer than a test may. */
it.each([
  ["fences", "```\n".repeat(300_000)],
  ["ticks of many lengths", Array.from({ length: 1_800 }, (_, at) => "`".repeat(1_800 - at)).join(" ")],
])("parses a megabyte of %s in time", (_, text) => {
  expect(parseBlocks(text).length).toBeGreaterThan(0);
});

it.each([
  ["one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"],
  ["## Title\nwords", '<p data-level="2"><strong>Title</strong></p><p>words</p>'],
  ["a **b _c_** d", "<p>a <strong>b <em>c</em></strong> d</p>"],
  ["**a *b**", "<p><strong>a *b</strong></p>"],
  ["2 * 3 * 4, snake_case_name, **", "<p>2 * 3 * 4, snake_case_name, **</p>"],
  ["`a *b*` ``c ` d`` `e", "<p><code>a *b*</code> <code>c ` d</code> `e</p>"],
  ["\\*no\\* <b>text</b> &amp;", "<p>*no* &lt;b&gt;text&lt;/b&gt; &amp;amp;</p>"],
  [
    "- a\n- b\n  - c\n\n  more\n\nend",
    "<ul><li><p>a</p></li><li><p>b</p><ul><li><p>c</p></li></ul><p>more</p></li></ul><p>end</p>",
  ],
  ["3. x\n4. y", '<ol start="3"><li><p>x</p></li><li><p>y</p></li></ol>'],
  ["in\n2024. It", "<p>in\n2024. It</p>"],
  ["> q\n> - r\n\nx", "<blockquote><p>q</p><ul><li><p>r</p></li></ul></blockquote><p>x</p>"],
  ["---\n* * *", "<hr><hr>"],
])("reads %j", (text, html) => {
  const { container } = render(<Markdown text={text} />);
  expect(container.firstElementChild?.innerHTML).toBe(html);
});

it("loses no text for any input", () => {
  const signs = [
    "*",
    "_",
    "`",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "!",
    "#",
    "-",
    "1.",
    "\n",
    " ",
    "\\",
    "word",
    "http://a.b",
  ];
  let seed = 7;
  for (let round = 0; round < 200; round++) {
    const text = Array.from(
      { length: 40 },
      () => signs[(seed = (seed * 48271) % 2147483647) % signs.length],
    ).join("");
    const { container, unmount } = render(<Markdown text={text} />);
    expect(container.textContent?.split("word").length ?? 0).toBeGreaterThanOrEqual(
      text.split("word").length,
    );
    unmount();
  }
});

it.each([
  ["- [x] done\n- [ ] open\n- [x]not", ["done", "open", null], ["done", "open", "[x]not"]],
  ["1. [X] one", ["done"], ["one"]],
])("reads the task list %j", (text, states, words) => {
  const { container } = render(<Markdown text={text} />);
  const items = [...container.querySelectorAll("li")];
  expect(items.map((item) => item.getAttribute("data-task"))).toEqual(states);
  expect(items.map((item) => item.textContent)).toEqual(words);
  expect(container.querySelector("input")).toBeNull();
});

it("reads a table, with its alignment, escaped lines and cells too many", () => {
  const { container } = render(
    <Markdown
      text={"Orders:\n| No | Who | Sum |\n|---|:-:|--:|\n| 1 | `a\\|b` | 2 |\n3 | **c** | 4 | 5\n\nend"}
    />,
  );
  const rows = [...container.querySelectorAll("tr")].map((row) =>
    [...row.cells].map((cell) => cell.textContent),
  );
  expect(rows).toEqual([
    ["No", "Who", "Sum"],
    ["1", "a|b", "2"],
    ["3", "c", "4", "5"],
  ]);
  expect([...container.querySelectorAll("th")].map((cell) => cell.getAttribute("data-align"))).toEqual([
    null,
    "center",
    "right",
  ]);
  expect([...container.querySelectorAll("p")].map((each) => each.textContent)).toEqual(["Orders:", "end"]);
});

it.each(["a | b", "a | b\n--", "| a |\n|---|---|", "|---|---|", "a|b\n---"])(
  "reads no table in %j",
  (text) => {
    const { container } = render(<Markdown text={text} />);
    expect(container.querySelector("table")).toBeNull();
  },
);

it.each([
  ["```js\na < b\n```\nx", "js", "a < b"],
  ["```\nstill being said", "", "still being said"],
])("reads the code in %j, with a button of ours to copy it", (text, language, code) => {
  const { container } = render(<Markdown text={text} />);
  expect(container.querySelector("pre")?.textContent).toBe(code);
  expect(container.querySelector("pre")?.previousElementSibling?.firstElementChild?.textContent).toBe(
    language,
  );
  expect([...container.querySelectorAll("button")].map((button) => button.title)).toEqual(["Copy code"]);
});

it("copies the code as it is, and selects it where there is no clipboard", async () => {
  const { container } = render(<Markdown text={"```sh\nrm -r 'a b'\n```"} />);
  const button = container.querySelector("button")!;
  vi.stubGlobal("navigator", {});
  button.click();
  await waitFor(() => expect(button.textContent).toContain("Press Ctrl+C"));
  expect(getSelection()?.toString()).toBe("rm -r 'a b'");
  const writeText = vi.fn(() => Promise.resolve());
  vi.stubGlobal("navigator", { clipboard: { writeText } });
  button.click();
  await waitFor(() => expect(button.textContent).toContain("Copied"));
  expect(writeText).toHaveBeenCalledWith("rm -r 'a b'");
  vi.unstubAllGlobals();
});

it("makes no link, and shows the host that an address leads to", () => {
  expect(showAddress("https://good.example@evil.example/x@y")).toEqual({
    before: "https://good.example@",
    host: "evil.example",
    after: "/x@y",
  });
  expect(showAddress("https://p\u0430ypal.example/").host).toBe("xn--pypal-4ve.example");
  expect(showAddress("http://a.example:81").host).toBe("a.example:81");
  for (const address of [
    "javascript:alert(1)",
    "//evil.example",
    "/api/me",
    "data:text/html,x",
    "https://",
    "",
  ])
    expect(showAddress(address)).toEqual({ before: address, host: "", after: "" });
  const { container } = render(
    <Markdown text={"[a *b*](https://c.example/d) <https://e.example/f> [g](/api/me)"} />,
  );
  expect(container.textContent).toBe("a b (https://c.example/d) https://e.example/f g (/api/me)");
  expect(container.querySelector("a, [href]")).toBeNull();
});

it("renders no HTML, image, or heading", () => {
  const { container } = render(
    <Markdown text={"# T\n\n<b>x</b> <img src=y> ![i](https://e.example/p.png)\n\n<div>z</div>"} />,
  );
  expect(container.querySelectorAll("b, img, h1, div div div")).toHaveLength(0);
  expect(container.textContent).toContain("[image: i (https://e.example/p.png)]");
});

function depthOf(tree: unknown): number {
  if (typeof tree !== "object" || tree === null) return 0;
  return (
    1 +
    Object.values(tree)
      .map(depthOf)
      .reduce((one, other) => Math.max(one, other), 0)
  );
}

function deeper(): string {
  const lines = [];
  for (let depth = 0, size = 0; size < SIZE; depth++) {
    lines.push(`${" ".repeat(depth * 2)}- x`);
    size += depth * 2 + 4;
  }
  return lines.join("\n");
}
