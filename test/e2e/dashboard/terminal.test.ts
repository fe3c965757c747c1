/** A terminal in the browser: typing, size, clipboard, whole-screen programs, its end, several of them. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { heading, press, TestBrowser } from "../../helpers/browser.ts";
import { fixture } from "../../helpers/fixture.ts";
import { changeAccount, signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { enter, line, linesOf, prompt } from "../../helpers/terminals.ts";
import { until } from "../../helpers/until.ts";

const { url, natsUrl } = sharedStack();

const member = await fixture(signUp(url));
// Each page asks a few things, and all tests together more than the first tier allows.
await changeAccount(natsUrl, member, { tier: "enterprise" });
const { id: sandbox } = await member.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default", name: "workshop" });
const browser = await fixture(TestBrowser.launch(url));
afterEach(async () => {
  await endAll();
  await browser.closePages();
});

/** Shells outlive their pages; what one test has left running would be opened by the next. */
async function endAll(): Promise<void> {
  const command = "for shell in $(ps -eo pid=,tty= | grep pts | while read -r pid _; do echo $pid; done); do kill -9 $shell; done; true";
  await member.call("POST", `/v1/sandboxes/${sandbox}/execute`, { command });
  await until("no session is left", async () => {
    const { data } = await member.call<{ data: { status: string }[] }>("GET", `/v1/sandboxes/${sandbox}/sessions`);
    return data.every(({ status }) => status === "ended");
  });
}

async function open(options: object = {}): Promise<Page> {
  const page = await browser.open(`/sandboxes/${sandbox}/terminal`, { member, ...options });
  await prompt(page);
  return page;
}

test("the page of a sandbox leads to its terminal, where a command is typed and its output seen", async () => {
  const page = await browser.open(`/sandboxes/${sandbox}`, { member });
  await heading(page, "workshop");
  await page.getByRole("link", { name: "Terminal" }).click();
  await page.waitForURL(`**/sandboxes/${sandbox}/terminal`);
  await prompt(page);
  await enter(page, "echo $((6*7)) ünïcödé 🚪");
  await line(page, /^42 ünïcödé 🚪/);
});

test("the program is told the size of the window, also when that changes", async () => {
  const page = await open();
  const size = async (name: string): Promise<[rows: number, cols: number]> => {
    await enter(page, `echo ${name} $(stty size)`);
    const [, rows, cols] = (await line(page, new RegExp(`^${name} \\d+ \\d+$`))).split(" ").map(Number);
    return [rows ?? 0, cols ?? 0];
  };
  let attempts = 0;
  const [rows, cols] = await size("wide");
  assert.equal(await page.locator(".xterm-rows > div").count(), rows);
  await page.setViewportSize({ width: 800, height: 500 });
  await until("fewer rows", async () => (await page.locator(".xterm-rows > div").count()) < rows);
  // The program is told by the worker in its own time.
  await until("the program knows", async () => {
    const [fewer, narrower] = await size(`narrow${attempts++}`);
    return fewer === (await page.locator(".xterm-rows > div").count()) && narrower < cols;
  });
});

test("what is selected is copied, and what is pasted arrives as it is", async () => {
  const page = await open();
  await enter(page, "clear; echo copy-me");
  await line(page, "copy-me");
  const row = page.locator(".xterm-rows > div").filter({ hasText: /^copy-me/ });
  const box = await row.boundingBox();
  assert.ok(box);
  await page.mouse.dblclick(box.x + 10, box.y + box.height / 2);
  await page.keyboard.press("Control+Shift+C");
  assert.equal(await until("the copy", async () => (await page.evaluate<string>("navigator.clipboard.readText()")) || false), "copy-me");

  await enter(page, "clear; echo ready; cat -v");
  await line(page, "ready");
  // The end of a bracketed paste, which would let what follows count as typed.
  await page.evaluate("navigator.clipboard.writeText('first\\x1b[201~ line\\nsecond line\\n')");
  await page.keyboard.press("Control+Shift+V");
  await line(page, "first[201~ line");
  await line(page, "second line");
  await page.evaluate("navigator.clipboard.writeText('from the button\\n')");
  await press(page, "Paste (Ctrl+Shift+V)");
  await line(page, "from the button");
  await page.keyboard.press("Control+D");
  await prompt(page);
});

test("a program that takes the whole screen gives it back", async () => {
  const page = await open();
  await enter(page, "clear; echo before");
  await line(page, "before");
  const program = "import curses; curses.wrapper(lambda w: (w.addstr(3, 5, 'whole screen'), w.refresh(), w.getch()))";
  await enter(page, `python3 -c "${program}"`);
  await line(page, "     whole screen");
  assert.ok(!(await linesOf(page)).includes("before"));
  await page.keyboard.press("q");
  await line(page, "before");
  await prompt(page);
});

test("Ctrl-C interrupts, also a flood, and the page goes on being used", async () => {
  const page = await open();
  await enter(page, "sleep 1000");
  await until("it runs", async () => (await linesOf(page)).some((text) => text.endsWith("sleep 1000")));
  await page.keyboard.press("Control+C");
  await prompt(page);
  await enter(page, "echo interrupted: $?");
  await line(page, "interrupted: 130");
  await enter(page, "yes");
  await until("the flood", async () => (await linesOf(page)).filter((text) => text === "y").length > 10);
  await page.getByRole("button", { name: "New" }).click();
  await page.getByRole("tab", { name: "Terminal 2" }).waitFor();
  await page.getByRole("tab").first().click();
  await page.keyboard.press("Control+C");
  await until("the prompt is back", async () => /[#$]$/.test((await linesOf(page)).at(-1) ?? ""));
  await enter(page, "clear; echo dry");
  await line(page, "dry");
});

test("the end of a shell is said, and another one is started in its place", async () => {
  const page = await open();
  await enter(page, "exit 3");
  await page.getByText("Ended with exit code 3").waitFor();
  await press(page, "Start a new one");
  await prompt(page);
  await press(page, "End");
  await press(page.getByRole("dialog"), "End it");
  await page.getByText("Ended by SIGKILL").waitFor();
  await press(page, "Close");
  await page.getByText("No terminal is open").waitFor();
});

test("several terminals are apart, and are there again when the page is loaded anew", async () => {
  const page = await open();
  await enter(page, "clear; place=first; echo in the $place");
  await line(page, "in the first");
  await press(page, "New");
  await prompt(page);
  await enter(page, 'clear; [ "$place" ] || place=second; echo in the $place');
  await line(page, "in the second");
  await page.getByRole("tab").first().click();
  await line(page, "in the first");
  await page.reload();
  await until("both are there", async () => (await page.getByRole("tab").count()) === 2);
  await page.getByRole("tab").first().click();
  await line(page, "in the first");
  await enter(page, "clear; echo still $place");
  await line(page, "still first");
  await page.getByRole("tab").nth(1).click();
  await line(page, "in the second");
});

test("a terminal that is left goes on, and is opened again", async () => {
  const page = await open();
  await enter(page, "clear; n=0; while sleep 0.1; do n=$((n+1)); echo tick $n; done");
  await line(page, "tick 3");
  await press(page, "Detach");
  await page.getByText("Left running. It goes on").waitFor();
  await page.getByText("No terminal is open").waitFor();
  await press(page, "Open 1 more");
  await line(page, /^tick [1-9]\d/);
  await page.keyboard.press("Control+C");
});

test("questions of programs are answered once, not again when their output is shown once more", async () => {
  const page = await open();
  // Asks where the cursor is, and reads the answer.
  await enter(page, String.raw`clear; stty -echo raw; printf '\033[6n'; answer=$(head -c 6 | od -An -c); stty sane; echo; echo answered $answer`);
  await line(page, /^answered 033 \[ \d/);
  await prompt(page);
  await page.reload();
  await line(page, /^answered 033 \[ \d/);
  await prompt(page);
  await enter(page, "clear; echo clean");
  await line(page, "clean");
});

const keyNames = ["Esc", "Tab", "Ctrl", "Alt", "Ctrl-C", "Left", "Down", "Up", "Right", "Ctrl-D"];
const narrow = { width: 390, height: 844 };

for (const [name, options] of [
  ["a telephone", { viewport: narrow, hasTouch: true, isMobile: true }],
  ["a narrow window", { viewport: narrow }],
] as const) {
  test(`${name} has the keys that its keyboard may lack, in reach also when that lies over the page`, async () => {
    const page = await open(options);
    const lead = await page.locator('meta[name="viewport"]').getAttribute("content");
    assert.match(lead ?? "", /interactive-widget=resizes-content/, "the keyboard makes the window smaller");
    const keys = page.getByRole("group", { name: "Keys" });
    for (const height of [narrow.height, 430]) {
      await page.setViewportSize({ width: narrow.width, height });
      for (const key of keyNames) {
        const box = await keys.getByRole("button", { name: key, exact: true }).boundingBox();
        assert.ok(box && box.width >= 44 && box.height >= 44, `${key} can be hit`);
        assert.ok(box.x >= 0 && box.x + box.width <= narrow.width && box.y + box.height <= height, `${key} is in view at a height of ${height}`);
      }
      const rows = await page.locator(".xterm-rows > div").count();
      assert.ok(rows >= 4, `${rows} rows of the terminal are left at a height of ${height}`);
    }
    await page.setViewportSize(narrow);
    await enter(page, "sleep 1000");
    await until("it runs", async () => (await linesOf(page)).some((text) => text.endsWith("sleep 1000")));
    await press(page, "Ctrl-C");
    await prompt(page);
    await press(page, "Up");
    await until("the last command is back", async () => /sleep 1000$/.test((await linesOf(page)).at(-1) ?? ""));
  });
}

test("Ctrl and Alt of the page hold for one key, and the arrows are those that the program asks for", async () => {
  const page = await open({ viewport: narrow, hasTouch: true, isMobile: true });
  const ctrl = page.getByRole("button", { name: "Ctrl", exact: true });
  await enter(page, "clear; echo begins; cat -v");
  await line(page, "begins");
  await ctrl.tap();
  assert.equal(await ctrl.getAttribute("aria-pressed"), "true");
  assert.equal(await page.evaluate("document.activeElement.className"), "xterm-helper-textarea", "the keyboard stays");
  await page.keyboard.type("a");
  assert.equal(await ctrl.getAttribute("aria-pressed"), "false");
  await page.keyboard.type("b");
  await page.getByRole("button", { name: "Alt", exact: true }).tap();
  await page.keyboard.type("c");
  await ctrl.tap();
  await page.getByRole("button", { name: "Left", exact: true }).tap();
  await page.getByRole("button", { name: "Up", exact: true }).tap();
  await page.keyboard.press("Enter");
  await line(page, "^Ab^[c^[[1;5D^[[A");
  await ctrl.tap();
  await ctrl.tap();
  assert.equal(await ctrl.getAttribute("aria-pressed"), "false");
  await ctrl.tap();
  await page.keyboard.type("c");
  await prompt(page);
  // Another word than before: that one may still be there.
  await enter(page, String.raw`clear; printf '\033[?1h'; echo goes on; cat -v`);
  await line(page, "goes on");
  await page.getByRole("button", { name: "Down", exact: true }).tap();
  await page.keyboard.press("Enter");
  await line(page, "^[OB");
  await press(page, "Ctrl-D");
  await enter(page, String.raw`printf '\033[?1l'`);
});

test("the keyboard leads out of the terminal and back, and output is said by screen readers when asked", async () => {
  const page = await open();
  await press(page, "New");
  await prompt(page);
  await page.keyboard.press("Control+Shift+L");
  const [first, second] = [page.getByRole("tab").first(), page.getByRole("tab").nth(1)];
  assert.equal(await page.evaluate("document.activeElement.id"), await second.getAttribute("id"));
  await page.keyboard.press("ArrowLeft");
  assert.equal(await first.getAttribute("aria-selected"), "true");
  await page.keyboard.press("ArrowDown");
  await press(page, "Say output aloud with a screen reader");
  await page.locator(".terminal-panel:not([hidden]) .screen").click();
  await enter(page, "clear; echo hear me");
  await page.locator(".terminal-panel:not([hidden]) .xterm-accessibility").getByText("hear me", { exact: true }).first().waitFor();
});
