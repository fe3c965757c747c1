/** A terminal whose network breaks, and a terminal that others watch. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { press, TestBrowser } from "../../helpers/browser.ts";
import { fixture } from "../../helpers/fixture.ts";
import { changeAccount, signUp } from "../../helpers/members.ts";
import { TestNetwork } from "../../helpers/network.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { enter, everything, expectWhole, line, linesOf, prompt } from "../../helpers/terminals.ts";
import { until } from "../../helpers/until.ts";

const { url, natsUrl } = sharedStack();
/** The browser logs what breaks. */
const tolerates = /^Failed to load resource|^WebSocket connection to/;

const network = await fixture(TestNetwork.to(url));
const member = await signUp(url);
await changeAccount(natsUrl, member, { tier: "enterprise" });
const browser = await fixture(TestBrowser.launch(network.url));
afterEach(async () => {
  network.up();
  await browser.closePages();
  await member.clear();
});

async function make(): Promise<string> {
  return (await member.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" })).id;
}

function rows(page: Page): Promise<number> {
  return page.locator(".terminal-panel:not([hidden]) .xterm-rows > div").count();
}

async function open(path: string, who = member): Promise<Page> {
  return browser.open(path, { member: who, tolerates });
}

test("when the network breaks in the middle of output, the terminal connects again and misses nothing", async () => {
  const id = await make();
  const page = await open(`/sandboxes/${id}/terminal`);
  await prompt(page);
  await enter(page, "clear; stty -echo; for n in $(seq 1 300); do echo number $n; sleep 0.01; done; stty echo; echo over");
  await line(page, /^number (5\d|[6-9]\d|1\d\d)$/);
  network.down();
  await page.getByText("Connection lost. Reconnecting").first().waitFor();
  // What is typed meanwhile is kept for later.
  await enter(page, "echo typed while away");
  await until("output came that nobody got", async () => {
    const { stdout } = await member.call<{ stdout: string }>("POST", `/v1/sandboxes/${id}/execute`, {
      command: "pgrep -f 'sleep 0.01' > /dev/null && echo runs; true",
    });
    return stdout === "runs\n" || stdout === "";
  });
  network.up();
  await line(page, "over");
  await line(page, "typed while away");
  expectWhole(await everything(page), /^number (\d+)$/gm, 1, 300);
  assert.equal(await page.locator(".terminal-bar").count(), 0);
});

test("where the terminal could not be loaded, one can try again", async () => {
  const page = await open("/sandboxes");
  await page.route("**/assets/workplace-*", (route) => route.abort());
  await page.goto(`/sandboxes/${await make()}/terminal`);
  await page.getByRole("alert").getByText("The terminal could not be loaded.").waitFor();
  await page.unroute("**/assets/workplace-*");
  await press(page, "Try again");
  await prompt(page);
});

test("what ended while nobody was connected is told afterwards", async () => {
  const page = await open(`/sandboxes/${await make()}/terminal`);
  await prompt(page);
  await enter(page, "clear; sleep 2; echo last words; exit 7");
  network.down();
  await page.getByText("Connection lost. Reconnecting").first().waitFor();
  network.up();
  await page.getByText("Ended with exit code 7").waitFor();
  await line(page, "last words");
});

test("a link shows a terminal to others of the account, who can watch and, when they ask for it, take over", async () => {
  const page = await open(`/sandboxes/${await make()}/terminal`);
  await prompt(page);
  await enter(page, "clear; echo before anybody came");
  await line(page, "before anybody came");
  await press(page, "Share");
  await page.getByText("Link copied.").waitFor();
  const link = await page.evaluate<string>("navigator.clipboard.readText()");
  assert.match(link, /\/sandboxes\/sb_\w+\/terminal\?session=sess_\w+$/);

  const watcher = await open(link);
  await watcher.getByText("Read only").waitFor();
  await line(watcher, "before anybody came");
  // It is shown in the size that programs write for.
  await page.setViewportSize({ width: 760, height: 520 });
  await until("the watcher's screen has the rows of the owner's", async () => (await rows(watcher)) === (await rows(page)) && (await rows(page)) < 30);
  await watcher.locator(".screen").click();
  await enter(watcher, "echo from the watcher");
  await page.locator(".screen").click();
  await enter(page, "echo from the owner");
  await line(watcher, "from the owner");
  assert.ok(!(await linesOf(page)).some((text) => text.includes("from the watcher")), "a watcher has typed");

  await press(watcher, "Take over");
  await page.getByText("Read only").waitFor();
  await watcher.getByText("Read only").waitFor({ state: "detached" });
  await until("the owner's screen has the rows of the watcher's", async () => (await rows(watcher)) > 30 && (await rows(watcher)) === (await rows(page)));
  await watcher.locator(".screen").click();
  await enter(watcher, "echo now from the watcher");
  await line(page, "now from the watcher");
  await press(page, "Take over");
  await watcher.getByText("Read only").waitFor();
});

test("a terminal that connects again after its log-in has ended leads to the log-in", async () => {
  const guest = await signUp(url);
  const { id } = await guest.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" });
  const page = await open(`/sandboxes/${id}/terminal`, guest);
  await prompt(page);
  network.down();
  await page.getByText("Connection lost. Reconnecting").first().waitFor();
  await guest.clear();
  await guest.call("POST", "/v1/auth/logout");
  network.up();
  await page.waitForURL(/\/login/);
});

test("another account finds nothing", async () => {
  const id = await make();
  const page = await open(`/sandboxes/${id}/terminal`);
  await prompt(page);
  await press(page, "Share");
  const link = await until("the link", async () => (await page.evaluate<string>("navigator.clipboard.readText()")) || false);
  const stranger = await signUp(url);
  const theirs = await open(link, stranger);
  await theirs.getByText("There is no such sandbox.").waitFor();
  const answer = await fetch(`${url}/v1/sandboxes/${id}/sessions`, { headers: stranger.headers });
  assert.equal(answer.status, 404);
  const opened = await theirs.evaluate<string>(`new Promise((resolve) => {
    const socket = new WebSocket(location.origin.replace("http", "ws") + "/v1/sandboxes/${id}/session", ["sandgate.exec.v1"]);
    socket.onopen = () => resolve("open");
    socket.onerror = () => resolve("refused");
  })`);
  assert.equal(opened, "refused");
});

test("a session that is gone is said to be", async () => {
  const page = await open(`/sandboxes/${await make()}/terminal?session=sess_00000000000000000000000000`);
  await page.getByRole("alert").waitFor();
  await page.getByRole("button", { name: "Reconnect" }).waitFor();
});
