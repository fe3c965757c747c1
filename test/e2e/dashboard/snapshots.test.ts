/** Snapshots in a real browser: taken, restored, cloned from, deleted. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { closed, dialogOf, heading, press, rowOf, TestBrowser } from "../../helpers/browser.ts";
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

async function execute(id: string, command: string): Promise<void> {
  const { exit_code, stderr } = await member.call<{ exit_code: number; stderr: string }>("POST", `/v1/sandboxes/${id}/execute`, { command });
  assert.equal(exit_code, 0, stderr);
}

async function output(page: Page, command: string): Promise<string | null> {
  await page.getByLabel("Command", { exact: true }).fill(command);
  await press(page, "Run");
  const status = page.locator(".run .run-status").first();
  await status.getByText(/exit code/).waitFor();
  assert.match((await status.textContent()) ?? "", /exit code 0/);
  return page.locator(".run").first().getByLabel("Output").textContent();
}

test("a snapshot is taken in the page, and a sandbox restored from it has its files", async () => {
  const { id } = await make("source");
  await execute(id, "echo 'kept <b>well</b>' > /root/kept");
  const page = await browser.open(`/sandboxes/${id}`, { member });
  await press(page, "Snapshot");
  await dialogOf(page).getByLabel("Name").fill("before-the-change");
  await press(dialogOf(page), "Take snapshot");
  await closed(page);
  await execute(id, "echo changed > /root/kept");
  await page.getByRole("status", { name: "Messages" }).getByRole("link", { name: "before-the-change" }).click();

  await heading(page, "Snapshots");
  const row = rowOf(page, "before-the-change");
  await row.getByText("Application", { exact: true }).waitFor();
  assert.match((await row.getAttribute("class")) ?? "", /marked/);
  assert.equal(await row.getByRole("link", { name: "source" }).getAttribute("href"), `/sandboxes/${id}`);
  await press(row, "Restore");
  const dialog = dialogOf(page);
  await dialog.getByLabel("Name").fill("restored");
  await dialog.getByLabel("Memory").fill("384");
  await press(dialog, "Add variable");
  await dialog.getByLabel("Variable name").fill("GREETING");
  await dialog.getByLabel("Variable value").fill("hello");
  await press(dialog, "Restore");
  await heading(page, "restored");
  assert.equal(await output(page, 'cat /root/kept; echo "$GREETING"'), "kept <b>well</b>\nhello\n");
  const facts = await page.locator(".facts").textContent();
  assert.match(facts ?? "", /384 MB.*5 GB/);
});

test("a restored sandbox is shown as creating until it runs, and then goes on by itself", async () => {
  const { id } = await make("slow-source");
  const { id: restored } = await member.call<Sandbox>("POST", `/v1/snapshots/${(await snapshot(id, "slow")).id}/restore`, { name: "slow-one" });
  const page = await browser.open("/", { member });
  let isCreating = true;
  await page.route(`**/v1/sandboxes/${restored}`, async (route) => {
    const response = await route.fetch();
    const body = (await response.json()) as object;
    await route.fulfill({ response, json: isCreating ? { ...body, status: "creating" } : body });
  });
  await page.goto(`/sandboxes/${restored}`);
  await page.getByText("The sandbox is being made").waitFor();
  await page.getByText("creating", { exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Snapshot" }).count(), 0);
  isCreating = false;
  await page.getByLabel("Command", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Snapshot" }).waitFor();
});

test("a clone has the files of its source and what else was asked for", async () => {
  const { id } = await make("original");
  await execute(id, "echo same > /root/file");
  const page = await browser.open(`/sandboxes/${id}`, { member });
  await press(page, "Clone");
  assert.equal(await dialogOf(page).getByLabel("Memory").inputValue(), "256");
  await dialogOf(page).getByLabel("Name").fill("the-clone");
  await dialogOf(page).getByLabel("Memory").fill("300");
  await press(dialogOf(page), "Clone");
  await closed(page);
  await page.getByRole("link", { name: "the-clone" }).click();
  await heading(page, "the-clone");
  assert.equal(await output(page, "cat /root/file"), "same\n");
  await page.locator(".facts").getByText("300 MB").waitFor();
});

test("a sandbox is forked from its page: the copies have numbers, its files and the resources that were chosen", async () => {
  const { id } = await make("trunk");
  await execute(id, "echo same > /root/file");
  const page = await browser.open(`/sandboxes/${id}`, { member });
  await press(page, "Fork");
  const dialog = dialogOf(page);
  assert.equal(await dialog.getByLabel("Copies").inputValue(), "2");
  await dialog.getByLabel("Copies").fill("101");
  await press(dialog, "Fork");
  await dialog.getByText("1 to 100", { exact: true }).waitFor();
  await dialog.getByLabel("Copies").fill("3");
  await dialog.getByLabel("Name").fill("branch");
  await dialog.getByLabel("Memory").fill("300");
  await press(dialog, "Fork");
  await closed(page);
  await page.getByRole("status", { name: "Messages" }).getByRole("link", { name: "3 copies" }).click();
  await heading(page, "Sandboxes");
  for (const name of ["branch-1", "branch-2", "branch-3"]) await rowOf(page, name).getByText("running").waitFor();
  await page.getByRole("link", { name: "branch-2" }).click();
  await heading(page, "branch-2");
  assert.equal(await output(page, "cat /root/file"), "same\n");
  await page.locator(".facts").getByText("300 MB").waitFor();
  assert.ok(!(await member.call<{ data: Snapshot[] }>("GET", "/v1/snapshots/list")).data.some(({ source_sandbox_id }) => source_sandbox_id === id));
});

test("a fork for which there is no room is refused in the dialog, and copies that were not made are told with the reason", async () => {
  const { id } = await make("refused");
  const page = await browser.open(`/sandboxes/${id}`, { member, tolerates: /Failed to load resource/ });
  await press(page, "Fork");
  const dialog = dialogOf(page);
  await dialog.getByLabel("Copies").fill("100");
  await press(dialog, "Fork");
  await dialog.getByRole("alert").getByText("no room for 100 more").waitFor();
  await page.route("**/fork", async (route) => {
    const response = await route.fetch();
    const { data } = (await response.json()) as { data: object[] };
    const error = { code: "unavailable", message: "the worker is full <b>now</b>", request_id: "req_1" };
    await route.fulfill({ response, json: { data: [...data, { error }, { error }] } });
  });
  await dialog.getByLabel("Copies").fill("1");
  await dialog.getByLabel("Name").fill("lonely");
  await press(dialog, "Fork");
  await closed(page);
  const messages = page.getByRole("status", { name: "Messages" });
  await messages.getByRole("link", { name: "lonely" }).waitFor();
  await messages.getByText("Copies that were not made: the worker is full <b>now</b>").waitFor();
});

test("the list says of each snapshot whether it has memory, and if not, why", async () => {
  const { memory_reason } = await snapshot((await make("forgetful")).id, "without");
  assert.ok(memory_reason);
  const page = await browser.open("/snapshots", { member });
  await page.route("**/v1/snapshots/list*", async (route) => {
    const response = await route.fetch();
    const { data, ...rest } = (await response.json()) as { data: Snapshot[] };
    const shown = data.map((one) => (one.name === "without" ? [one, { ...one, id: `${one.id}x`, name: "with", memory: true, memory_reason: null }] : one));
    await route.fulfill({ response, json: { ...rest, data: shown.flat() } });
  });
  await page.reload();
  await rowOf(page, "without").getByText(`No: ${memory_reason}`).waitFor();
  assert.equal(await rowOf(page, "without").getByTitle(memory_reason).count(), 1);
  await page
    .getByRole("row")
    .filter({ has: page.getByTitle("with", { exact: true }) })
    .getByText("Yes", { exact: true })
    .waitFor();
});

test("a sandbox is deleted with a snapshot first, which names a source that is no link any more", async () => {
  const { id } = await make("doomed");
  const page = await browser.open(`/sandboxes/${id}`, { member });
  await press(page, "Delete");
  const dialog = dialogOf(page);
  assert.equal(await page.evaluate("document.activeElement.textContent"), "Cancel");
  assert.ok(await dialog.getByLabel("Name of the snapshot").isHidden());
  await dialog.getByLabel("Take a snapshot first").check();
  await dialog.getByLabel("Name of the snapshot").fill("last will");
  await press(dialog, "Delete sandbox");
  await dialog.getByRole("alert").getByText("snapshot_name").waitFor();
  await dialog.getByLabel("Name of the snapshot").fill("last-will");
  await press(dialog, "Delete sandbox");
  await heading(page, "Sandboxes");
  await page.getByRole("link", { name: "last-will" }).click();
  const row = rowOf(page, "last-will");
  await row.getByText("doomed").waitFor();
  assert.equal(await row.getByRole("link").count(), 0);
});

test("a list of more than one page has a way to the others, and lists change while they are looked at", async () => {
  const { id } = await make("much-kept");
  for (let number = 0; number < 21; number++) {
    await member.call("POST", `/v1/sandboxes/${id}/snapshot`, { name: `kept-${number}`, quick: true });
  }
  const page = await browser.open("/snapshots", { member });
  await rowOf(page, "kept-20").waitFor();
  assert.equal(await page.locator("tbody tr").count(), 20);
  await press(page, "Next page");
  await page.getByText("Page 2 of 2").waitFor();
  await rowOf(page, "kept-0").waitFor();
  await press(page, "Previous page");
  await rowOf(page, "kept-20").waitFor();
  await snapshot(id, "taken-elsewhere");
  await rowOf(page, "taken-elsewhere").waitFor();
});

test("all snapshots are deleted at once after a question, and then the page tells how to make one", async () => {
  const page = await browser.open("/snapshots", { member });
  await press(page, "Delete all");
  await press(dialogOf(page), "Cancel");
  await page.locator("tbody tr").first().waitFor();
  await press(page, "Delete all");
  await press(dialogOf(page), "Delete all");
  await page.getByText("No snapshots yet").waitFor();
  await page.getByRole("link", { name: "Go to the sandboxes" }).click();
  await heading(page, "Sandboxes");
});
