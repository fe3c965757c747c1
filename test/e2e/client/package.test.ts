/** The package that `npm run build` makes: plain JavaScript for the machine's own Node and for browsers, and its types. */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { execa } from "execa";
import { TestBrowser } from "../../helpers/browser.ts";
import { openClient } from "../../helpers/client.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { TestNetwork } from "../../helpers/network.ts";

const { account, client } = await fixture(openClient());
const { path: folder } = fixture(temporaryFolder("package"));
await execa(process.execPath, ["shared/client/build.mjs"]);
// As npm installs it: the package, and the one that it depends on.
mkdirSync(join(folder, "node_modules"));
cpSync("dist", join(folder, "node_modules/sandgate"), { recursive: true });
symlinkSync(join(process.cwd(), "node_modules/ws"), join(folder, "node_modules/ws"));
writeFileSync(join(folder, "package.json"), '{"type":"module"}');
const files = fixture(
  createServer((_request, response) => {
    response.setHeader("content-type", "text/javascript");
    response.setHeader("access-control-allow-origin", "*");
    response.end(readFileSync("dist/client/browser.js"));
  }),
);
await new Promise<void>((resolve) => files.listen(0, "127.0.0.1", resolve));

const program = `
import { NotFoundError, Sandgate } from "sandgate/client";
const client = new Sandgate();
const sandbox = await client.sandboxes.create();
const { stdout } = await sandbox.execute("echo synchronous");
let streamed = "";
for await (const chunk of sandbox.executeAsync("echo streamed")) streamed += chunk.stdout;
await sandbox.uploadFile("package.json", "/work/package.json");
await sandbox.downloadFile("/work/package.json", "copy.json");
const session = await sandbox.session({ command: "cat" });
await session.write("session\\n");
await session.closeStdin();
let live = "";
for await (const { bytes } of session) live += new TextDecoder().decode(bytes);
await sandbox.delete();
const gone = await client.sandboxes.get(sandbox.id).catch((error) => error instanceof NotFoundError);
console.log(JSON.stringify([stdout, streamed, live, gone]));
`;

test("it runs on the machine's own Node, with ws and nothing else", async () => {
  const { apiKey, url } = account.api;
  const manifest = JSON.parse(readFileSync("dist/package.json", "utf8"));
  assert.deepEqual(Object.keys(manifest.dependencies), ["ws"]);
  writeFileSync(join(folder, "program.js"), program);
  const env = { PATH: outsidePath(), HOME: folder, SANDGATE_URL: url, SANDGATE_API_KEY: apiKey };
  const { stdout } = await execa("node", ["program.js"], { cwd: folder, env, extendEnv: false });
  assert.deepEqual(JSON.parse(stdout), ["synchronous\n", "streamed\n", "session\n", true]);
  assert.equal(readFileSync(join(folder, "copy.json"), "utf8"), '{"type":"module"}');
  const { stdout: ids } = await execa("node", [join(folder, "node_modules/sandgate/cli/main.js"), "ls", "-q"], { cwd: folder, env, extendEnv: false });
  assert.equal(ids, "");
});

/** Without this project's own Node. */
function outsidePath(): string {
  return (process.env.PATH ?? "")
    .split(":")
    .filter((dir) => !dir.includes("node_modules"))
    .join(":");
}

test("nothing in it needs a Node newer than 18 or names the schemas' library", () => {
  for (const file of ["client/index.js", "client/browser.js", "cli/main.js"]) {
    const code = readFileSync(join("dist", file), "utf8");
    assert.doesNotMatch(code, /^\s*await using\b|Promise\.withResolvers|AbortSignal\.any|typebox/m, file);
  }
  assert.doesNotMatch(readFileSync("dist/client/browser.js", "utf8"), /from "(node:|ws)/);
});

test("programs are checked by its types, strictly and without any other package", async () => {
  const user = `
import { type AdminAccountWithKeys, type CreateBody, type ExecutionResult, type PageOf, RateLimitError, Sandgate, type SandboxInfo } from "sandgate/client";
export const wanted: CreateBody = { image: "default", env_vars: { A: "b" }, network: { access: "none" } };
export const tierOf = ({ api_keys, limits }: AdminAccountWithKeys): "beta" | "pro" | "enterprise" | number | undefined => api_keys[0]?.tier ?? limits.burst;
export const states = ({ data, pagination }: PageOf<SandboxInfo>): ("creating" | "running" | "moving" | "error" | "deleting")[] =>
  data.slice(0, pagination.page_size).map(({ status }) => status);
// @ts-expect-error no such access
export const unknown: CreateBody = { image: "default", network: { access: "all" } };
const client = new Sandgate({ apiKey: "k", timeoutMs: 1 });
export async function main(): Promise<ExecutionResult | undefined> {
  await using sandbox = await client.sandboxes.create({ resources: { cpus: 1 } });
  for await (const { stdout } of sandbox.executeAsync("true")) console.log(stdout?.length);
  for await (const snapshot of client.snapshots.list()) console.log(snapshot.info.size_bytes);
  // @ts-expect-error a wrong type
  await sandbox.execute("true", { timeout: "1" });
  try {
    return await sandbox.execute("true");
  } catch (error) {
    if (error instanceof RateLimitError) console.log(error.retryAfterMs);
    return undefined;
  }
}
`;
  writeFileSync(join(folder, "user.ts"), user);
  const lib = ["es2022", "dom", "dom.asynciterable"];
  const compilerOptions = { strict: true, noEmit: true, target: "es2022", module: "nodenext", lib, types: [], skipLibCheck: false };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["user.ts"] }));
  const { stdout, exitCode } = await execa(join(process.cwd(), "node_modules/.bin/tsc"), ["-p", folder], { reject: false });
  assert.equal(exitCode, 0, stdout);
});

test("a browser gets a session by a token, and no client by a key", async () => {
  const { url } = account.api;
  const sandbox = await client.sandboxes.create();
  const { token } = await sandbox.sessionToken();
  await using browser = await TestBrowser.launch(url);
  const page = await browser.open("/healthz");
  const module = `http://127.0.0.1:${(files.address() as AddressInfo).port}/browser.js`;
  const talk = async ({ module, url, sandboxId, token }: Record<string, string>): Promise<string[]> => {
    const { Sandgate, session } = await import(module as string);
    const refused = await Promise.resolve()
      .then(() => new Sandgate({ apiKey: "sg_x", baseUrl: url }))
      .catch((error: Error) => error.message);
    const live = await session({ url, sandboxId, token, command: "read line; echo got $line" });
    await live.write("it\n");
    let text = "";
    for await (const { bytes } of live) text += new TextDecoder().decode(bytes);
    return [text, String((await live.exited).exit_code), refused];
  };
  const [text, exitCode, refused] = await page.evaluate(talk, { module, url, sandboxId: sandbox.id, token });
  assert.deepEqual([text, exitCode], ["got it\n", "0"]);
  assert.match(refused ?? "", /an API key must not get into a browser/);
});

test("a browser whose connection breaks joins its session again by another token, and misses nothing", async () => {
  const { url } = account.api;
  const sandbox = await client.sandboxes.create();
  await using browser = await TestBrowser.launch(url);
  await using network = await TestNetwork.to(url);
  const page = await browser.open("/healthz", { tolerates: /^WebSocket connection to/ });
  await page.exposeFunction("nextToken", async () => (await sandbox.sessionToken()).token);
  await page.exposeFunction("cut", () => network.cut());
  // What the tests' compiler puts around functions.
  await page.evaluate("globalThis.__name = (named) => named");
  const module = `http://127.0.0.1:${(files.address() as AddressInfo).port}/browser.js`;
  const talk = async ({ module, url, sandboxId }: Record<string, string>): Promise<{ text: string; changes: boolean[]; exitCode: number }> => {
    const { session } = await import(module as string);
    const page = globalThis as unknown as { nextToken: () => Promise<string>; cut: () => Promise<void> };
    const changes: boolean[] = [];
    const command = "seq 1 20000; read line; echo got $line; exit 3";
    const live = await session({ url, sandboxId, token: page.nextToken, command, onConnection: (is: boolean) => changes.push(is) });
    const decoder = new TextDecoder();
    let text = "";
    for await (const { bytes } of live) {
      const before = text.length;
      text += decoder.decode(bytes, { stream: true });
      if (before < 30_000 && text.length >= 30_000) {
        await page.cut();
        await live.write("it\n");
      }
    }
    return { text, changes, exitCode: (await live.exited).exit_code };
  };
  const { text, changes, exitCode } = await page.evaluate(talk, { module, url: network.url, sandboxId: sandbox.id });
  assert.equal(text, `${Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join("")}got it\n`);
  assert.deepEqual([changes, exitCode], [[false, true], 3]);
});
