/** The dialogs about snapshots in a real browser: while they work, when something is wrong, by keyboard, on a narrow screen. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Page, Request } from "playwright-core";
import { closed, dialogOf, press, rowOf, TestBrowser } from "../../helpers/browser.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { changeAccount, signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";
import type { Sandbox, Snapshot } from "../../helpers/snapshots.ts";

const { url, natsUrl } = sharedStack();

const member = await fixture(signUp(url));
// The tests are faster than the people that the first tier's allowance is meant for.
await changeAccount(natsUrl, member, { tier: "pro" });
const browser = await fixture(TestBrowser.launch(url));
afterEach(() => browser.closePages());
atEnd(() => member.call("DELETE", "/v1/snapshots/delete-all"));

const make = (name: string, resources = { cpus: 1, memory: 256, storage: 5 }): Promise<Sandbox> =>
  member.call("POST", "/v1/sandboxes/create", { image: "default", name, resources });
const snapshot = (id: string, name: string): Promise<Snapshot> => member.call("POST", `/v1/sandboxes/${id}/snapshot`, { name });

const isWide = (page: Page): Promise<number> => page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");

async function execute(id: string, command: string): Promise<void> {
  const { exit_code, stderr } = await member.call<{ exit_code: number; stderr: string }>("POST", `/v1/sandboxes/${id}/execute`, { command, timeout: 240 });
  assert.equal(exit_code, 0, stderr);
}

/** Answers of such calls are held back until the returned function is called; what was sent is in `sent`. */
async function hold(page: Page, path: string): Promise<{ readonly sent: Request[]; release(): void }> {
  const sent: Request[] = [];
  let release: () => void = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(path, async (route) => {
    sent.push(route.request());
    await released;
    await route.continue();
  });
  return { sent, release: () => release() };
}

test("the button tells what goes on, a second Enter sends nothing, and a lost answer is asked for under the same key", async () => {
  const { id } = await make("patient");
  const page = await browser.open(`/sandboxes/${id}`, { member, tolerates: /Failed to load resource/ });
  const { sent, release } = await hold(page, "**/snapshot");
  await press(page, "Snapshot");
  const dialog = dialogOf(page);
  await dialog.getByLabel("Name").fill("only-once");
  await page.getByRole("radio", { name: "Quick" }).check();
  await page.keyboard.press("Enter");
  await dialog.getByRole("button", { name: /^Taking the snapshot… ?[1-9] s$/ }).waitFor();
  await dialog.getByLabel("Name").press("Enter");
  await dialog.getByRole("button", { name: /^Taking the snapshot/ }).click({ force: true });
  assert.ok(await dialog.isVisible());
  release();
  await closed(page);
  assert.equal(sent.length, 1);
  assert.deepEqual(sent[0]?.postDataJSON(), { name: "only-once", quick: true });
  await page.unroute("**/snapshot");

  const keys: (string | undefined)[] = [];
  await page.route("**/snapshot", async (route) => {
    keys.push(route.request().headers()["idempotency-key"]);
    if (keys.length > 1) return route.continue();
    await route.fetch();
    await route.abort();
  });
  await press(page, "Snapshot");
  await dialog.getByLabel("Name").fill("answer-lost");
  await press(dialog, "Take snapshot");
  await dialog.getByRole("alert").getByText("cannot be reached").waitFor();
  await press(dialog, "Take snapshot");
  await closed(page);
  assert.match(keys[0] ?? "", /^[0-9a-f]{32}$/);
  assert.equal(keys[1], keys[0]);
  const { data } = await member.call<{ data: Snapshot[] }>("GET", "/v1/snapshots/list");
  assert.deepEqual(
    data
      .filter(({ source_sandbox_id }) => source_sandbox_id === id)
      .map(({ name, consistency }) => `${name} ${consistency}`)
      .sort(),
    ["answer-lost application", "only-once crash"],
  );
});

test("a dialog that is closed before its work is done tells in a message how it went", async () => {
  const { id } = await make("left-alone");
  const page = await browser.open(`/sandboxes/${id}`, { member });
  const messages = page.getByRole("status", { name: "Messages" });
  const { release } = await hold(page, "**/snapshot");
  await press(page, "Snapshot");
  await dialogOf(page).getByLabel("Name").fill("in-peace");
  await press(dialogOf(page), "Take snapshot");
  await press(dialogOf(page).locator("footer"), "Close");
  await closed(page);
  release();
  await messages.getByRole("link", { name: "in-peace" }).waitFor();
});

test("what is wrong is said in the dialog", async () => {
  const { id } = await make("mistaken");
  await execute(id, "fallocate -l 1100M /root/big");
  await snapshot(id, "big-one");
  const page = await browser.open(`/sandboxes/${id}`, { member });
  await press(page, "Snapshot");
  await dialogOf(page).getByLabel("Name").fill("no spaces/allowed");
  await press(dialogOf(page), "Take snapshot");
  await dialogOf(page).getByRole("alert").getByText("name").waitFor();
  await page.keyboard.press("Escape");

  await page.goto("/snapshots");
  await press(rowOf(page, "big-one"), "Restore");
  const storage = dialogOf(page).getByLabel("Storage");
  assert.equal(await storage.getAttribute("placeholder"), "As in the snapshot");
  await storage.fill("0");
  await press(dialogOf(page), "Restore");
  await dialogOf(page).getByText("1 to 1000").waitFor();
  assert.equal(await page.evaluate("document.activeElement.labels[0].textContent"), "Storage (GB)");
  await storage.fill("1");
  await press(dialogOf(page), "Restore");
  await dialogOf(page).getByRole("alert").getByText("storage of 1 GB is less than").waitFor();
  await storage.fill("");
  await press(dialogOf(page), "Restore");
  await page.getByLabel("Command", { exact: true }).waitFor();
});

test("by keyboard: Escape closes a dialog and gives the focus back; what is deleted leaves the focus on the page", async () => {
  await snapshot((await make("typed")).id, "typed-away");
  const page = await browser.open("/snapshots", { member });
  const row = rowOf(page, "typed-away");
  await row.getByRole("button", { name: "Restore" }).focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate("document.activeElement.labels[0].firstChild.textContent"), "Name");
  await page.keyboard.press("Escape");
  await closed(page);
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Restore");

  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await dialogOf(page).getByText("cannot be restored any more").waitFor();
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Cancel");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await row.waitFor({ state: "detached" });
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Snapshots");
});

test("nothing is too wide for a narrow screen, in the list and in the dialogs", async () => {
  const { id } = await make("narrow");
  await snapshot(id, "a-name-with-as-many-characters-as-the-service-allows-it-to-have");
  const page = await browser.open("/snapshots", { member, viewport: { width: 360, height: 740 } });
  const row = rowOf(page, "a-name-with-as-many");
  await row.waitFor();
  assert.ok(
    (await page.evaluate<number>(
      "(() => { const { scrollWidth, clientWidth } = document.querySelector('.table-frame'); return scrollWidth - clientWidth; })()",
    )) <= 0,
  );
  await press(row, "Restore");
  assert.ok((await isWide(page)) <= 0);
  await page.keyboard.press("Escape");
  await page.goto(`/sandboxes/${id}`);
  for (const name of ["Snapshot", "Clone", "Fork", "Delete"]) {
    await press(page, name);
    const inside = await page.evaluate<boolean>("(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)(document.querySelector('dialog'))");
    assert.ok(inside && (await isWide(page)) <= 0, name);
    await page.keyboard.press("Escape");
    await closed(page);
  }
});
