/** The terminal in light and dark, wide and narrow. With SCREENSHOTS=<folder> pictures of it are kept there. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { looks, press, TestBrowser } from "../../helpers/browser.ts";
import { fixture } from "../../helpers/fixture.ts";
import { changeAccount, signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { enter, line, prompt } from "../../helpers/terminals.ts";

const { url, natsUrl } = sharedStack();
const folder = process.env.SCREENSHOTS;

if (folder) mkdirSync(folder, { recursive: true });
const member = await signUp(url);
await changeAccount(natsUrl, member, { tier: "enterprise" });
const browser = await fixture(TestBrowser.launch(url));
afterEach(async () => {
  await browser.closePages();
  await member.clear();
});

async function picture(page: Page, name: string): Promise<void> {
  const tooWide = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  assert.ok(tooWide <= 0, `${name}: ${tooWide} px do not fit`);
  const tooHigh = await page.evaluate<number>("document.documentElement.scrollHeight - innerHeight");
  assert.ok(tooHigh <= 0, `${name}: ${tooHigh} px are below the window`);
  if (folder) await page.screenshot({ path: join(folder, `terminal-${name}.png`), animations: "disabled" });
}

/** The colour that most of the terminal has. */
const ground = (page: Page): Promise<string> => page.evaluate("getComputedStyle(document.querySelector('.xterm-scrollable-element')).backgroundColor");

const colours = String.raw`clear; ls --color=always /; printf '\033[1mbold\033[0m \033[4munderlined\033[0m \033[38;2;214;93;14mtrue colour\033[0m\n'; for c in 1 2 3 4 5 6; do printf "\033[3${"$"}{c}mcolour $c \033[9${"$"}{c}mbright\033[0m  "; done; echo`;

for (const { colorScheme, viewport } of looks([1280, 390], folder)) {
  test(`the terminal, ${colorScheme}, ${viewport.width} wide`, async () => {
    const { id } = await member.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default", name: "nightly-report" });
    const page = await browser.open(`/sandboxes/${id}/terminal`, { member, colorScheme, viewport });
    const end = `${colorScheme}-${viewport.width}`;
    await prompt(page);
    await enter(page, colours);
    await line(page, /6 bright$/);
    await picture(page, `live-${end}`);
    assert.equal(await ground(page), colorScheme === "light" ? "rgb(251, 250, 248)" : "rgb(11, 10, 10)");

    await press(page, "Share");
    const watcher = await browser.open(await page.evaluate<string>("navigator.clipboard.readText()"), { member, colorScheme, viewport });
    await watcher.getByText("Read only").waitFor();
    await line(watcher, /6 bright$/);
    await picture(watcher, `watched-${end}`);

    await press(page, "New");
    await prompt(page);
    await enter(page, "exit 3");
    await page.getByText("Ended with exit code 3").waitFor();
    await picture(page, `ended-${end}`);
    await press(page, "Close");
    await press(page, "End");
    await page.getByRole("dialog").waitFor();
    await picture(page, `ending-${end}`);
    await page.keyboard.press("Escape");
    await press(page, "Detach");
    await page.getByText("No terminal is open").waitFor();
    await picture(page, `left-${end}`);
  });
}

test("the colours change with those of the page", async () => {
  const { id } = await member.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" });
  const page = await browser.open(`/sandboxes/${id}/terminal`, { member, colorScheme: "light" });
  await prompt(page);
  await page.getByRole("radio", { name: "Dark" }).check();
  await page.waitForFunction("getComputedStyle(document.querySelector('.xterm-scrollable-element')).backgroundColor === 'rgb(11, 10, 10)'");
});
