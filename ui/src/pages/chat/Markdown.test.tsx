import { render } from "@testing-library/react";
import { expect, it } from "vitest";
import { parseBlocks } from "./blocks";
import { Markdown, parseWebLink } from "./Markdown";

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
  "deeper lists": "",
};

/** Parsing time that grows faster than the text would exceed the test's time limit. */
it.each(Object.entries(HARD))("parses worst-case input: %s", (name, piece) => {
  const text = name === "deeper lists" ? deeper() : piece.repeat(SIZE / piece.length);
  const blocks = parseBlocks(text);
  expect(depthOf(blocks)).toBeLessThan(60);
});

it.each([
  ["one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"],
  ["## Title\nwords", "<p><strong>Title</strong></p><p>words</p>"],
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
  ["```js\na < b\n```\nx", "<pre><code>a &lt; b</code></pre><p>x</p>"],
  ["```\nstill being said", "<pre><code>still being said</code></pre>"],
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

it("links only to web addresses, and shows the host", () => {
  expect(parseWebLink("https://good.example@evil.example/x")?.host).toBe("evil.example");
  expect(parseWebLink("https://p\u0430ypal.example/")?.host).toBe("xn--pypal-4ve.example");
  for (const address of [
    "javascript:alert(1)",
    "//evil.example",
    "/api/me",
    "data:text/html,x",
    "https://",
    "",
    undefined,
  ])
    expect(parseWebLink(address)).toBeNull();
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
