/** Every example on /docs does what it says, as it is printed there. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { routes } from "../../../gateway/api/routes.ts";
import { ids } from "../../../gateway/docs/examples.ts";
import { isDocumented } from "../../../gateway/docs/operation.ts";
import { appDir } from "../../../shared/programs.mjs";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { startStack } from "../../helpers/stack.ts";

const run = promisify(execFile);
const documented = routes.filter(isDocumented);
const entities: Readonly<Record<string, string>> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" };

/** Those that need what earlier ones have made, or take it away, come in this order; all others before them. */
const last = ["getSandbox", "deleteSandbox", "revokeApiKey", "adminRevokeKey", "adminDeleteSandbox", "deleteSnapshot"];
const atTheEnd = ["changePassword", "logOut", "deleteAllSnapshots", "deleteAllSandboxes", "adminResetPassword", "adminDeleteAccount"];
/** The only answer that these can have here. */
const otherwise: Readonly<Record<string, number>> = { adminForgetWorker: 409, adminRemoveImage: 409 };

/** What the reader has exported: the variables of the introduction. */
const shell: Record<string, string> = {};

const { path: folder } = fixture(temporaryFolder("docs"));
const stack = await fixture(startStack({ name: "docs", workers: 2 }));
const page = await (await fetch(`${stack.url}/docs`)).text();
const examples = new Map(documented.map(({ docs }) => [docs.name, snippet(`Example: ${docs.summary}`)]));
Object.assign(shell, { SANDGATE_URL: stack.url, SANDGATE_API_KEY: stack.apiKey });

/** The text of a piece of code on the page. */
function snippet(label: string): string {
  const escaped = label.replaceAll("&", "&amp;").replaceAll("'", "&#39;");
  const [, code = ""] = page.split(`data-copy="${escaped}"><pre tabindex="0" aria-label="${escaped}"><code>`);
  const text = code.slice(0, code.indexOf("</code>")).replaceAll(/<[^>]+>/g, "");
  assert.ok(text, `an example of: ${label}`);
  return text.replaceAll(/&\w+;|&#39;/g, (entity) => entities[entity] ?? entity);
}

/** Pastes lines into a shell. Its curl tells the status as well; all else is as printed. */
async function paste(lines: string): Promise<{ status: number; body: string }> {
  const script = `curl() { command curl -w '\\n%{http_code}' "$@"; }\n${lines}\n`;
  const { stdout } = await run("sh", ["-euc", script], { cwd: folder, env: { PATH: process.env.PATH, ...shell }, timeout: 60_000 });
  const at = stdout.lastIndexOf("\n");
  return { body: stdout.slice(0, at), status: Number(stdout.slice(at + 1)) };
}

async function works(name: string): Promise<Record<string, unknown>> {
  const route = documented.find(({ docs }) => docs.name === name);
  const { status, body } = await paste(examples.get(name) ?? "");
  assert.equal(status, otherwise[name] ?? route?.docs.success.status, `${examples.get(name)}\n${body}`);
  return body.startsWith("{") && !body.includes("\n{") ? (JSON.parse(body) as Record<string, unknown>) : {};
}

test("the examples for curl work as they are printed", async (t) => {
  const tried = new Set<string>();
  const step = (name: string, then: (answer: Record<string, unknown>) => unknown = () => {}): Promise<void> => {
    tried.add(name);
    return t.test(name, async () => void then(await works(name)));
  };
  const export_ =
    (variable: string, field = "id") =>
    (answer: Record<string, unknown>) => {
      shell[variable] = String(answer[field]);
    };
  await step("createSandbox", export_("SANDBOX"));
  // While no worker is cordoned.
  await step("adminMoveSandbox");
  await step("createSnapshot", export_("SNAPSHOT"));
  await step("uploadFile");
  await step("signUp");
  await step("logIn", (answer) => {
    shell.CSRF_TOKEN = String(answer.csrf_token);
    shell.ACCOUNT = String((answer.account as { id: string }).id);
  });
  await step("createApiKey", export_("KEY"));
  await step("adminListWorkers", ({ data }) => {
    shell.WORKER = (data as { id: string }[])[0]?.id ?? "";
  });
  await step("adminListImages", ({ data }) => {
    shell.IMAGE = (data as { id: string; default: boolean }[]).find((image) => image.default)?.id ?? "";
  });
  const programs = documented.flatMap(({ docs }) => (docs.program ? [docs.name] : []));
  for (const { docs } of documented) if (![...tried, ...last, ...atTheEnd, ...programs].includes(docs.name)) await step(docs.name);
  // The example cordons the worker.
  const undo = (examples.get("adminDrainWorker") ?? "").replace('"on":true', '"on":false');
  assert.equal((await paste(undo)).status, 200);
  for (const name of last) {
    if (name === "adminDeleteSandbox") export_("SANDBOX")(await works("createSandbox"));
    if (name === "adminRevokeKey") export_("KEY")(await works("createApiKey"));
    await step(name);
  }
  await step("changePassword", export_("CSRF_TOKEN", "csrf_token"));
  for (const name of atTheEnd.slice(1)) await step(name);
  assert.deepEqual([...tried, ...programs].sort(), documented.map(({ docs }) => docs.name).sort(), "all of them were tried");
});

test("the examples name nothing that only the reference has", () => {
  for (const [name, text] of examples) {
    for (const id of Object.values(ids)) assert.ok(!text.includes(id), `${name}: ${id}`);
    assert.ok(!text.includes("localhost/"), `${name} names an image by where this server keeps it`);
  }
  const exported = [...snippet("Environment for the examples").matchAll(/\b([A-Z_]+)=/g)].map(([, variable]) => variable);
  // What is in single quotes is not for the reader's shell.
  for (const [name, text] of examples)
    for (const [, variable = ""] of text.replaceAll(/'[^']*'/g, "").matchAll(/\$([A-Z_]+)/g)) assert.ok(exported.includes(variable), `${name}: ${variable}`);
});

test("the examples for the client library fit it, and do what they say", async () => {
  const programs = documented.flatMap(({ docs }) => (docs.program ? [docs.name] : []));
  assert.deepEqual(programs, ["openSession"]);
  const name = "example.ts";
  writeFileSync(join(folder, name), examples.get("openSession") ?? "");
  symlinkSync(join(appDir, "node_modules"), join(folder, "node_modules"));
  const paths = { "sandgate/client": [join(appDir, "shared/client/index.ts")] };
  const compilerOptions = { noEmit: true, types: ["node"], typeRoots: [join(appDir, "node_modules/@types")], paths };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ extends: join(appDir, "tsconfig.json"), compilerOptions, include: [name] }));
  await run(join(appDir, "node_modules/.bin/tsc"), ["-p", folder]).catch(({ stdout }: { stdout: string }) => assert.fail(stdout));

  const env = { ...process.env, ...shell };
  const { stdout } = await run(process.execPath, ["--import", "tsx", name], { cwd: folder, env, timeout: 60_000 });
  assert.match(stdout.replaceAll("\r", ""), /^world\nhello world\nexit code 0\n$/);
});
