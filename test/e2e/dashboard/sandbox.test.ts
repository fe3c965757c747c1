/** A sandbox from its making to its end, in a real browser. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { heading, TestBrowser } from "../../helpers/browser.ts";
import { fixture } from "../../helpers/fixture.ts";
import { changeAccount, signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const { url, natsUrl } = sharedStack();

const member = await fixture(signUp(url));
await changeAccount(natsUrl, member, { tier: "pro" });
const browser = await fixture(TestBrowser.launch(url));
afterEach(() => browser.closePages());

async function make(options: Record<string, unknown> = {}): Promise<{ id: string; name: string }> {
  return member.call("POST", "/v1/sandboxes/create", { image: "default", ...options });
}

async function run(page: Page, command: string): Promise<void> {
  await page.getByLabel("Command", { exact: true }).fill(command);
  await page.getByRole("button", { name: "Run" }).click();
}

/** The newest run of the page. */
const newest = (page: Page) => page.locator(".run").first();
const statusOf = (page: Page) => newest(page).locator(".run-status");
const outputOf = async (page: Page): Promise<string> => (await newest(page).getByLabel("Output").textContent()) ?? "";

test("a sandbox is made in the page with what was asked for, and deleted there", async () => {
  const page = await browser.open("/sandboxes", { member });
  await page.getByText("No sandboxes").waitFor();
  await page.getByRole("button", { name: "New sandbox" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("made-here");
  await dialog.getByLabel("Memory").fill("256");
  await dialog.getByRole("radio", { name: "None" }).check();
  await dialog.getByRole("button", { name: "Add variable" }).click();
  await dialog.getByLabel("Variable name").fill("GREETING");
  await dialog.getByLabel("Variable value").fill("<b>hello</b> $HOME");
  await dialog.getByRole("button", { name: "Create sandbox" }).click();
  const row = page.getByRole("row").filter({ hasText: "made-here" });
  await row.getByText("running").waitFor();
  await row.getByText("1 CPU · 256 MB · 5 GB").waitFor();

  await row.getByRole("link", { name: "made-here" }).click();
  await heading(page, "made-here");
  await run(page, 'printf %s "$GREETING"');
  await statusOf(page).getByText("exit code 0").waitFor();
  assert.equal(await outputOf(page), "<b>hello</b> $HOME");

  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete sandbox" }).click();
  await heading(page, "Sandboxes");
  await row.waitFor({ state: "detached" });
});

test("output appears while the command goes on", async () => {
  const { id } = await make();
  const page = await browser.open(`/sandboxes/${id}`, { member });
  // The second line is printed only after the first one has been seen.
  await run(page, "echo line1; while [ ! -e /tmp/seen ]; do sleep 0.1; done; echo line2; echo oops >&2; exit 3");
  await until("the first line", async () => (await outputOf(page)) === "line1\n");
  await statusOf(page).getByText("running").waitFor();
  await member.call("POST", `/v1/sandboxes/${id}/execute`, { command: "touch /tmp/seen" });
  await statusOf(page).getByText("exit code 3").waitFor();
  assert.ok((await outputOf(page)).includes("line2\n"));
  assert.equal(await newest(page).locator(".stderr").textContent(), "oops\n");
});

test("three lines, one each second, come one after the other", async () => {
  const { id } = await make();
  const page = await browser.open(`/sandboxes/${id}`, { member });
  const seen: string[] = [];
  await page.exposeFunction("tellOutput", (text: string) => void seen.push(text));
  await page.evaluate(
    "new MutationObserver(() => tellOutput(document.querySelector('.run .output-text')?.textContent ?? '')).observe(document.body, { subtree: true, childList: true, characterData: true })",
  );
  await run(page, "for i in 1 2 3; do echo line$i; sleep 1; done");
  await statusOf(page).getByText("exit code 0").waitFor();
  assert.ok(
    seen.some((text) => text.includes("line1") && !text.includes("line3")),
    "line1 was shown before line3 existed",
  );
  assert.equal(await outputOf(page), "line1\nline2\nline3\n");
});

test("a stopped command ends in the sandbox as well", async () => {
  const { id } = await make();
  const page = await browser.open(`/sandboxes/${id}`, { member });
  await run(page, "echo begun; sleep 1234");
  await until("it has begun", async () => (await outputOf(page)).includes("begun"));
  await page.getByRole("button", { name: "Stop" }).click();
  await statusOf(page).getByText("stopped").waitFor();
  await until("no sleep is left", async () => {
    const { stdout } = await member.call<{ stdout: string }>("POST", `/v1/sandboxes/${id}/execute`, { command: "cat /proc/[0-9]*/cmdline | tr '\\0' ' '" });
    return !stdout.includes("sleep 1234");
  });
});

test("a flood of output is shown to its end, and only its last part is kept in the page", async () => {
  const { id } = await make();
  const page = await browser.open(`/sandboxes/${id}`, { member });
  await run(page, "seq 1 500000");
  await statusOf(page).getByText("exit code 0").waitFor();
  const text = await outputOf(page);
  assert.ok(text.endsWith("\n499999\n500000\n"));
  assert.ok(text.length < 3 * 1024 * 1024, `${text.length} characters are in the page`);
  await page.getByText("Earlier output is not shown any more.").waitFor();
  await until("its end is in view", () => isAtEnd(page));
});

test("the end of the output is followed until somebody scrolls up", async () => {
  const { id } = await make();
  const page = await browser.open(`/sandboxes/${id}`, { member });
  await run(page, "seq 1 500; while [ ! -e /tmp/go ]; do sleep 0.1; done; seq 501 1000");
  await until("the first half", async () => (await outputOf(page)).endsWith("\n500\n"));
  await until("its end is in view", () => isAtEnd(page));
  await newest(page).getByLabel("Output").hover();
  await page.mouse.wheel(0, -2_000);
  await until("it is scrolled up", async () => !(await isAtEnd(page)));
  await member.call("POST", `/v1/sandboxes/${id}/execute`, { command: "touch /tmp/go" });
  await statusOf(page).getByText("exit code 0").waitFor();
  assert.ok((await outputOf(page)).endsWith("\n1000\n"));
  assert.ok(!(await isAtEnd(page)), "the page was scrolled back");
});

test("a command that cannot start says why", async () => {
  const { id } = await make();
  const page = await browser.open(`/sandboxes/${id}`, { member });
  await page.getByLabel("Working directory").fill("/does/not/exist");
  await run(page, "pwd");
  await statusOf(page).getByText("failed").waitFor();
  assert.match((await newest(page).getByRole("status").first().textContent()) ?? "", /does\/not\/exist|directory/);
});

test("files go in and come out unchanged, and a folder as an archive", async () => {
  const { id } = await make();
  const page = await browser.open(`/sandboxes/${id}#files`, { member });
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7) % 256));
  const upload = page.getByRole("region", { name: "Upload" });
  await upload.locator("input[type=file]").setInputFiles({ name: "data.bin", mimeType: "application/octet-stream", buffer: bytes });
  assert.equal(await upload.getByLabel("Path in the sandbox").inputValue(), "/work/data.bin");
  await upload.getByRole("button", { name: "Upload" }).click();
  await upload.getByText("written to").waitFor();

  const card = page.getByRole("region", { name: "Download" });
  await card.getByLabel("Path in the sandbox").fill("/work/data.bin");
  const file = await saved(page, () => card.getByRole("button", { name: "Download" }).click());
  assert.equal(file.name, "data.bin");
  assert.ok(file.bytes.equals(bytes));

  await card.getByLabel("Path in the sandbox").fill("/work");
  await card.getByRole("button", { name: "Download" }).click();
  await card.getByRole("alert").waitFor();
  await card.getByLabel("A folder, as a tar archive").check();
  const archive = await saved(page, () => card.getByRole("button", { name: "Download" }).click());
  assert.equal(archive.name, "work.tar");
  assert.ok(archive.bytes.includes("data.bin"));
});

test("logs show what ran, with its output", async () => {
  const { id } = await make();
  await member.call("POST", `/v1/sandboxes/${id}/execute`, { command: "echo from a program; exit 4" });
  const page = await browser.open(`/sandboxes/${id}#logs`, { member });
  const entry = page.locator(".log-entry").filter({ hasText: "echo from a program" });
  await entry.locator("summary").click();
  await entry.getByText("from a program", { exact: true }).waitFor();
  await entry.getByText("exit code 4").waitFor();
});

test("closed entries of the console say how their commands went, also after a reload", async () => {
  const { id } = await make();
  const page = await browser.open(`/sandboxes/${id}`, { member });
  await run(page, "echo fine");
  await statusOf(page).getByText("exit code 0").waitFor();
  await run(page, "echo wrong >&2; exit 3");
  await statusOf(page).getByText("exit code 3").waitFor();
  await run(page, "seq 1 3000");
  await statusOf(page).getByText("exit code 0").waitFor();
  await member.call("POST", `/v1/sandboxes/${id}/execute`, { command: "echo from a program; sleep 9", timeout: 1 });

  const entry = (command: string) => page.locator(".run").filter({ has: page.getByText(command, { exact: true }) });
  const signOf = async (command: string): Promise<string> => (await entry(command).locator("summary .run-mark").textContent()) ?? "";
  assert.equal(await entry("echo fine").getAttribute("open"), null);
  assert.equal(await signOf("echo fine"), "succeeded");
  assert.equal(await signOf("echo wrong >&2; exit 3"), "failedexit 3");

  await page.getByLabel("Timeout").fill("1");
  await run(page, "echo too long; sleep 9");
  await statusOf(page).getByText("its time was up").waitFor();
  assert.equal(await signOf("echo too long; sleep 9"), "timeout");

  await page.reload();
  await entry("echo from a program; sleep 9").waitFor();
  assert.equal(await page.locator(".run").count(), 5);
  assert.equal(await signOf("echo too long; sleep 9"), "timeout");
  assert.equal(await signOf("echo fine"), "succeeded");
  assert.equal(await signOf("echo wrong >&2; exit 3"), "failedexit 3");
  assert.equal(await signOf("echo from a program; sleep 9"), "timeout");
  assert.equal(await entry("echo wrong >&2; exit 3").locator("summary svg").count(), 2, "a sign beside the words");
  await entry("echo wrong >&2; exit 3").locator("summary").click();
  assert.equal(await entry("echo wrong >&2; exit 3").locator(".stderr").textContent(), "wrong\n");
  await entry("seq 1 3000").locator("summary").click();
  await entry("seq 1 3000").getByText("Output is cut: the log keeps the first 4 KiB of each stream.").waitFor();
  assert.ok(await entry("echo fine").getByText("Output is cut").isHidden());
  await page.getByLabel("Command", { exact: true }).press("ArrowUp");
  assert.equal(await page.getByLabel("Command", { exact: true }).inputValue(), "echo too long; sleep 9");
});

test("a command that runs when the page is opened is shown as running, and then with its end", async () => {
  const { id } = await make();
  const call = member.call("POST", `/v1/sandboxes/${id}/execute`, { command: "until [ -e /tmp/seen ]; do sleep 0.1; done; exit 5" });
  await until("it runs", async () => {
    const { logs } = await member.call<{ logs: { status: string }[] }>("GET", `/v1/sandboxes/logs?sandbox_id=${id}`);
    return logs.some(({ status }) => status === "running");
  });
  const page = await browser.open(`/sandboxes/${id}`, { member });
  await page.locator(".run-mark").getByText("running").waitFor();
  await member.call("POST", `/v1/sandboxes/${id}/execute`, { command: "touch /tmp/seen" });
  await page.locator(".run-mark").getByText("failed").waitFor();
  await call;
});

test("without samples the charts say so instead of drawing a scale of times", async () => {
  const { id } = await make();
  let answer = (): void => {};
  const page = await browser.open("/sandboxes", { member });
  await page.route("**/status?*", async (route) => {
    await new Promise<void>((resolve) => {
      answer = resolve;
    });
    const { timestamp, current } = (await (await route.fetch()).json()) as { timestamp: string; current: object };
    await route.fulfill({ json: { sandbox_name: "x", timestamp, current, history: [] } });
  });
  const asked = page.waitForRequest("**/status?*");
  await page.goto(`/sandboxes/${id}#usage`);
  await asked;
  assert.doesNotMatch((await page.locator(".charts").textContent()) ?? "", /\d\d:\d\d/, "before anything is known");
  answer();
  await page.getByText("Processes").waitFor();
  await page.getByText("No samples in this period yet.").first().waitFor();
  assert.equal(await page.getByText("No samples in this period yet.").count(), 2);
  assert.doesNotMatch((await page.locator(".charts").textContent()) ?? "", /\d\d:\d\d/);
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("usage shows numbers and a chart of the last hour", async () => {
  const { id } = await make();
  const page = await browser.open(`/sandboxes/${id}#usage`, { member });
  await page.getByText("Processes").waitFor();
  assert.equal(await page.locator("svg[role=img]").count(), 2);
  await page.getByRole("radio", { name: "6 hours" }).check();
  await page.getByText("Processes").waitFor();
});

test("all sandboxes are deleted at once after a question", async () => {
  const page = await browser.open("/sandboxes", { member });
  await page.getByRole("button", { name: "Delete all" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete all" }).click();
  await page.getByText("No sandboxes").waitFor();
});

test("a sandbox that is not there is said not to be", async () => {
  const page = await browser.open("/sandboxes/sb_00000000000000000000000000", { member });
  await page.getByText("There is no such sandbox.").waitFor();
});

function isAtEnd(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(`(() => {
    const text = document.querySelector(".run .output-text");
    return text.scrollHeight - text.scrollTop - text.clientHeight < 24;
  })()`);
}

async function saved(page: Page, press: () => Promise<void>): Promise<{ name: string; bytes: Buffer }> {
  const [download] = await Promise.all([page.waitForEvent("download"), press()]);
  return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) };
}
