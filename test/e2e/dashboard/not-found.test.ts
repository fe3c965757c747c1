/** A link to nowhere: people get a page that says so, programs an error that they can read. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, test } from "node:test";
import { heading, looks, TestBrowser } from "../../helpers/browser.ts";
import { fixture } from "../../helpers/fixture.ts";
import { signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";

const { url } = sharedStack();
const folder = process.env.SCREENSHOTS;
const browserAccept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

if (folder) mkdirSync(folder, { recursive: true });
const member = await signUp(url);
const browser = await fixture(TestBrowser.launch(url));
afterEach(() => browser.closePages());

for (const { colorScheme, viewport } of looks([1280, 390], folder)) {
  test(`a page that there is not, ${colorScheme}, ${viewport.width} wide`, async () => {
    const tolerates = /status of 40[14]|^404 for \/no\/such-page/;
    const page = await browser.open("/no/such-page", { member, colorScheme, viewport, tolerates });
    await heading(page, "Page not found");
    if (folder) await page.screenshot({ path: join(folder, `not-found-${colorScheme}-${viewport.width}.png`), animations: "disabled" });
    await page.getByRole("link", { name: "Go to the overview" }).click();
    await heading(page, "Overview");
    const strangers = await browser.open("/no/such-page", { colorScheme, viewport, tolerates });
    await heading(strangers, "Page not found");
    await strangers.getByRole("link", { name: "Log in" }).waitFor();
    if (folder) await strangers.screenshot({ path: join(folder, `not-found-stranger-${colorScheme}-${viewport.width}.png`), animations: "disabled" });
  });
}

const cases: readonly { name: string; path: string; headers: Record<string, string>; method?: string; html: boolean }[] = [
  { name: "a browser's navigation", path: "/no/such-page", headers: { accept: browserAccept, "sec-fetch-mode": "navigate" }, html: true },
  { name: "an older browser's, which does not say what it is for", path: "/settings/nothing", headers: { accept: browserAccept }, html: true },
  { name: "HEAD of one", path: "/no/such-page", headers: { accept: browserAccept }, method: "HEAD", html: true },
  { name: "a file of the pages that is gone", path: "/assets/main-00000000.js", headers: { accept: browserAccept }, html: true },
  { name: "a script's fetch", path: "/no/such-page", headers: { accept: browserAccept, "sec-fetch-mode": "cors" }, html: false },
  { name: "curl", path: "/no/such-page", headers: { accept: "*/*" }, html: false },
  {
    name: "a call that there is not, in a browser's address bar",
    path: "/v1/nothing",
    headers: { accept: browserAccept, "sec-fetch-mode": "navigate" },
    html: false,
  },
  { name: "a script that is asked for as one", path: "/assets/main-00000000.js", headers: { accept: "*/*", "sec-fetch-mode": "no-cors" }, html: false },
  { name: "something that is sent", path: "/no/such-page", headers: { accept: browserAccept }, method: "POST", html: false },
];
for (const { name, path, headers, method = "GET", html } of cases) {
  test(`${name}: ${html ? "a page" : "JSON"} with status 404`, async () => {
    const answer = await ask(method, path, headers);
    assert.equal(answer.statusCode, 404);
    assert.match(answer.headers["content-type"] ?? "", html ? /^text\/html; charset=utf-8$/ : /^application\/json/);
    const body = await text(answer);
    if (!html) assert.equal(JSON.parse(body).error.code, "not_found");
    else if (method === "GET") assert.match(body, /<div id="app">/);
    if (html) assert.match(String(answer.headers["content-security-policy"]), /default-src 'none'/);
  });
}

/** Not by `fetch`, which says itself what it is for. */
async function ask(method: string, path: string, headers: Record<string, string>): Promise<IncomingMessage> {
  const call = request(url + path, { method, headers });
  call.end();
  const [answer] = (await once(call, "response")) as [IncomingMessage];
  return answer;
}
