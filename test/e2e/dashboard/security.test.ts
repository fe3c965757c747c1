/** What other sites and hostile text can do to somebody who is logged in: nothing. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, test } from "node:test";
import { heading, TestBrowser } from "../../helpers/browser.ts";
import { fixture } from "../../helpers/fixture.ts";
import { signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";

const { url } = sharedStack();
const markup = `<img src=x onerror="window.__xss=1"><script>window.__xss=2</script>`;
const password = "a password of somebody else";

const member = await fixture(signUp(url, markup));
const browser = await fixture(TestBrowser.launch(url));
afterEach(() => browser.closePages());

/** Keys and the password are as they were, and the session still holds. */
async function expectUnchanged(keys: number): Promise<void> {
  const { data } = await member.call<{ data: unknown[] }>("GET", "/v1/account/keys");
  assert.equal(data.length, keys);
  const answer = await fetch(`${url}/v1/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email: member.email, password: member.password }),
  });
  assert.equal(answer.status, 200, "the password was changed");
}

const calls: readonly (readonly [path: string, body: object])[] = [
  ["/v1/account/keys", { name: "stolen" }],
  ["/v1/auth/logout", {}],
  ["/v1/account/password", { current_password: "", new_password: password }],
  ["/v1/sandboxes/create", { image: "default", name: "stolen" }],
];

/** A page of another origin that tries everything that needs no permission of ours. */
function attackPage(): string {
  const attempts = calls.flatMap(([path, body]) =>
    ["text/plain", "application/json", "application/x-www-form-urlencoded"].map(
      (type) =>
        `tries.push(fetch(${JSON.stringify(url + path)}, { method: "POST", credentials: "include", ${type === "application/json" ? "" : 'mode: "no-cors", '}headers: { "content-type": ${JSON.stringify(type)} }, body: ${JSON.stringify(JSON.stringify(body))} }).catch(() => {}));`,
    ),
  );
  return `<!doctype html><title>attack</title><script>const tries = []; ${attempts.join("\n")}
    Promise.all(tries).then(() => { document.title = "done"; });</script>`;
}

/** A form whose one field makes a body that is valid JSON, as browsers send it without asking. */
function formPage(path: string): string {
  return `<!doctype html><form method="post" enctype="text/plain" action="${url}${path}"><input name='{"name":"stolen","x":"' value='"}'></form>
    <script>document.forms[0].submit();</script>`;
}

async function withSite(html: (path: string) => string, work: (origins: string[]) => Promise<void>): Promise<void> {
  const server: Server = createServer((request, response) => {
    response.setHeader("content-type", "text/html");
    response.end(html(request.url ?? "/"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    // The same site with another port gets even SameSite=Strict cookies; another name is another site.
    await work([`http://127.0.0.1:${port}`, `http://localhost:${port}`]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("calls from pages of another origin change nothing", async () => {
  await withSite(attackPage, async (origins) => {
    for (const origin of origins) {
      const page = await browser.open("/", { member, tolerates: /CORS policy|Failed to load resource/ });
      await heading(page, "Overview");
      await page.goto(origin);
      await page.waitForFunction("document.title === 'done'");
      await page.goto("/");
      await heading(page, "Overview");
      await expectUnchanged(0);
      await page.context().close();
    }
  });
  const { data } = await member.call<{ data: unknown[] }>("GET", "/v1/sandboxes/list");
  assert.deepEqual(data, []);
});

for (const path of ["/v1/account/keys", "/v1/auth/logout", "/v1/sandboxes/create"]) {
  test(`a form of another origin that is sent to ${path} changes nothing`, async () => {
    await withSite(
      () => formPage(path),
      async (origins) => {
        for (const origin of origins) {
          const page = await browser.open("/", { member });
          const [answer] = await Promise.all([page.waitForResponse((response) => response.url() === url + path), page.goto(origin)]);
          assert.ok([400, 401, 403].includes(answer.status()), `${answer.status()}`);
          await expectUnchanged(0);
          await page.context().close();
        }
      },
    );
  });
}

test("a script of the same origin that does not know the token changes nothing", async () => {
  const page = await browser.open("/", { member });
  for (const [path, body] of calls) {
    for (const headers of [{}, { "x-csrf-token": "" }, { "x-csrf-token": "guessed" }]) {
      const known = { "content-type": "application/json", "x-sandgate-account": member.accountId };
      const init = JSON.stringify({ method: "POST", headers: { ...known, ...headers }, body: JSON.stringify(body) });
      const status = await page.evaluate<number>(`fetch("${path}", ${init}).then((answer) => answer.status)`);
      assert.equal(status, 403, path);
    }
  }
  await expectUnchanged(0);
});

test("the page may load nothing from elsewhere, run nothing inline and not be framed", async () => {
  const response = await fetch(`${url}/settings/keys`);
  const policy = response.headers.get("content-security-policy") ?? "";
  for (const rule of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) assert.ok(policy.includes(rule), rule);
  assert.doesNotMatch(policy, /unsafe|\*/);
  assert.equal(response.headers.get("x-content-type-options"), "nosniff");
  assert.doesNotMatch(await response.text(), /<script>|<style|\son\w+=|\sstyle=/);
});

test("scripts and styles come under the same policy and are kept by browsers, while pages are asked for again", async () => {
  for (const [path, caching] of [
    ["/sandboxes", "no-store"],
    ["/docs", "no-cache"],
  ]) {
    const page = await fetch(`${url}${path}`);
    assert.equal(page.headers.get("cache-control"), caching);
    const assets = [...(await page.text()).matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)];
    assert.ok(assets.length > 2, `${assets.length}`);
    for (const [, asset = ""] of assets) {
      const { status, headers } = await fetch(url + asset);
      assert.equal(status, 200, asset);
      assert.equal(headers.get("cache-control"), "public, max-age=31536000, immutable");
      for (const name of ["content-security-policy", "x-content-type-options"]) assert.equal(headers.get(name), page.headers.get(name), name);
    }
  }
  const missing = await fetch(`${url}/assets/main-AAAAAAAA.js`);
  assert.equal(missing.status, 404);
  assert.doesNotMatch(missing.headers.get("cache-control") ?? "", /immutable|max-age/);
});

test("markup in names, commands, output, files and errors is shown as text", async () => {
  const key = await member.call<{ id: string }>("POST", "/v1/account/keys", { name: markup });
  const { id } = await member.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default", env_vars: { HOSTILE: markup } });
  const page = await browser.open("/settings/keys", { member });
  await page.getByText(markup).first().waitFor();
  await page.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("dialog").getByText(markup).waitFor();
  await page.keyboard.press("Escape");
  await page.goto("/settings/account");
  await page.getByText(markup).waitFor();
  await page.goto("/");
  await page.getByText(markup).waitFor();

  await page.goto(`/sandboxes/${id}`);
  await page.getByLabel("Command", { exact: true }).fill(`printf '%s\\n' "$HOSTILE"; printf '%s\\n' "$HOSTILE" >&2 # ${markup}`);
  await page.keyboard.press("Enter");
  await page.getByText("exit code 0").waitFor();
  assert.ok((await page.getByLabel("Output").textContent())?.includes(markup));
  assert.equal(await page.locator(".run img, .run script").count(), 0);
  await page.getByRole("tab", { name: "Logs" }).click();
  await page.locator(".log-entry summary").first().click();
  await page.locator(".log-text").getByText(markup).first().waitFor();

  await page.getByRole("tab", { name: "Files" }).click();
  const upload = page.getByRole("region", { name: "Upload" });
  await upload.locator("input[type=file]").setInputFiles({ name: markup.replaceAll("/", ""), mimeType: "text/html", buffer: Buffer.from(markup) });
  await upload.getByRole("button", { name: "Upload" }).click();
  await upload.getByText("written to").waitFor();
  const download = page.getByRole("region", { name: "Download" });
  await download.getByLabel("Path in the sandbox").fill(`/work/${markup}`);
  await download.getByRole("button", { name: "Download" }).click();
  await download.getByRole("alert").waitFor();
  assert.equal(await page.locator("main img, main script").count(), 0);
  await member.call("DELETE", `/v1/account/keys/${key.id}`);
});

test("markup in an address or in what the server says stays text", async () => {
  const page = await browser.open(`/sandboxes/${encodeURIComponent(markup)}?next=${encodeURIComponent(markup)}#${markup}`, { member });
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  await page.route("**/v1/account/keys*", (route) =>
    route.fulfill({ status: 409, contentType: "application/json", body: JSON.stringify({ error: { code: "conflict", message: markup, request_id: markup } }) }),
  );
  await page.goto("/settings/keys");
  await page.getByRole("alert").getByText(markup).first().waitFor();
  assert.equal(await page.locator("main img, main script").count(), 0);
});

test("what a sandbox sends for download is saved, not shown", async () => {
  const { id } = await member.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default" });
  await member.call("POST", `/v1/sandboxes/${id}/execute`, { command: "echo '<script>window.__xss=3</script>' > /tmp/page.html" });
  const page = await browser.open("/", { member });
  const address = `/v1/sandboxes/${id}/download?path=/tmp/page.html&account=${member.accountId}`;
  const [download] = await Promise.all([page.waitForEvent("download"), page.evaluate(`location.assign(${JSON.stringify(address)})`)]);
  assert.equal(download.suggestedFilename(), "page.html");
});
