/** The reference as somebody reads it: in a browser, wide and narrow, with the keyboard, without scripts, on paper. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { heading, looks, TestBrowser } from "../../helpers/browser.ts";
import { fixture } from "../../helpers/fixture.ts";
import { signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";

const { url } = sharedStack();
const folder = process.env.SCREENSHOTS;

if (folder) mkdirSync(folder, { recursive: true });
const browser = await fixture(TestBrowser.launch(url));
afterEach(() => browser.closePages());

// The page has thousands of elements, and looking among all of them for one with a role takes a while.
const call = (page: Page, name: string) => page.locator(`#call-${name}`);
const menuOf = (page: Page) => page.locator('nav[aria-label="Calls"]');

for (const { colorScheme, viewport } of looks([1440, 1024, 390], folder)) {
  test(`the reference, ${colorScheme}, ${viewport.width} wide`, async () => {
    const page = await browser.open("/docs", { colorScheme, viewport });
    await heading(page, "API reference");
    const picture = async (name: string): Promise<void> => {
      const tooWide = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      assert.ok(tooWide <= 0, `${tooWide} px do not fit`);
      if (folder) await page.screenshot({ path: join(folder, `docs-${name}-${colorScheme}-${viewport.width}.png`), animations: "disabled" });
    };
    await picture("introduction");
    for (const name of ["execute", "uploadFile", "adminChangeAccount"]) {
      for (const summary of await call(page, name).locator("summary").all()) await summary.click();
      await call(page, name).scrollIntoViewIfNeeded();
      await page.evaluate(`document.getElementById("call-${name}").scrollIntoView()`);
      await picture(name);
    }
  });
}

test("an example is copied as it can be pasted into a shell", async () => {
  const page = await browser.open("/docs");
  // The word is there for a moment only.
  const told = page.getByText("Copied", { exact: true }).waitFor({ state: "attached" });
  await Promise.all([told, call(page, "createSandbox").getByRole("button", { name: "Copy Example: Create a sandbox" }).click()]);
  const copied = await page.evaluate<string>("navigator.clipboard.readText()");
  assert.match(copied, /^curl -sS "\$SANDGATE_URL\/v1\/sandboxes\/create" \\\n {2}-H "x-api-key: \$SANDGATE_API_KEY" \\\n/);
});

test("the menu leads to a call, tells where one is, and works from the keyboard", async () => {
  const page = await browser.open("/docs");
  const menu = menuOf(page);
  const link = menu.getByRole("link", { name: /^Take a snapshot/ });
  await link.focus();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/docs#call-createSnapshot");
  await call(page, "createSnapshot").getByRole("heading", { name: "Take a snapshot" }).waitFor();
  await menu.locator('a[aria-current="location"]').filter({ hasText: "Take a snapshot" }).waitFor();
  await page.locator("body").press("Home");
  await page.keyboard.press("Tab");
});

test("on a narrow screen the menu is opened and closed", async () => {
  const page = await browser.open("/docs", { viewport: { width: 390, height: 844 } });
  await page.getByRole("button", { name: "Menu" }).click();
  const link = menuOf(page).getByRole("link", { name: /^Upload a file/ });
  await link.click();
  await page.waitForURL("**/docs#call-uploadFile");
  await page.getByRole("button", { name: "Menu", expanded: false }).waitFor();
});

test("the colours that were chosen hold here as on the other pages", async () => {
  const page = await browser.open("/docs", { colorScheme: "light" });
  await page.getByRole("radio", { name: "Dark" }).check();
  await page.reload();
  assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
});

test("it says everything without scripts, and on paper", async () => {
  const page = await browser.open("/docs", { javaScriptEnabled: false });
  await heading(page, "API reference");
  await call(page, "execute").getByText("Run as /bin/sh -c command").waitFor();
  await call(page, "execute").locator("summary").first().click();
  await call(page, "execute")
    .getByRole("row", { name: /^exit_code/ })
    .waitFor();
  await page.emulateMedia({ media: "print" });
  await page.locator(".sidebar").waitFor({ state: "hidden" });
  await page.context().close();
});

test("the pages lead to it", async () => {
  const member = await signUp(url);
  const page = await browser.open("/", { member });
  const [opened] = await Promise.all([page.waitForEvent("popup"), page.getByRole("link", { name: "API reference" }).click()]);
  browser.watch(opened);
  await heading(opened, "API reference");
});
