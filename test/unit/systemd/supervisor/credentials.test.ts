/** The key of the first account, and the file in which people and `sandgate-admin` look for it. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { loadConfig } from "../../../../shared/config.ts";
import { type Instance, instanceOf } from "../../../../systemd/base/instance.ts";
import { apiKeyOf, secretFiles } from "../../../../systemd/supervisor/credentials.ts";

let dataDir = "";
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "sandgate-credentials-"));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const account = { name: "somebody", uid: 1_000, gid: 1_000, home: "/home/somebody" };
const accounts = { worker: account, gateway: { ...account, uid: 1_001, gid: 1_001 }, nats: { ...account, uid: 1_002, gid: 1_002 } };
const instanceWith = (settings: Record<string, string>): Instance =>
  instanceOf(loadConfig({ HOME: "/home/somebody", SANDGATE_DATA_DIR: dataDir, ...settings }), accounts);
const keyOf = (settings: Record<string, string>): Promise<string> => apiKeyOf(instanceWith(settings));
const kept = (): { key: string; mode: number } => {
  const file = join(dataDir, "api-key");
  return { key: readFileSync(file, "utf8").trim(), mode: statSync(file).mode & 0o777 };
};

test("one is made and kept, for the user who runs it alone", async () => {
  const key = await keyOf({});
  assert.match(key, /^sg_[\w-]{40,}$/);
  assert.deepEqual(kept(), { key, mode: 0o600 });
  assert.equal(await keyOf({}), key);
});

test("one from the settings takes the place of the former, which is no longer good", async () => {
  const former = await keyOf({});
  const chosen = "sg_chosen_by_the_operator";
  assert.equal(await keyOf({ SANDGATE_BOOTSTRAP_API_KEY: chosen }), chosen);
  assert.deepEqual(kept(), { key: chosen, mode: 0o600 });
  assert.notEqual(former, chosen);
  assert.equal(await keyOf({}), chosen, "it stays when the setting is taken away");
});

const asRoot = { skip: process.getuid?.() !== 0 && "only root gives files to others" };
test("secrets reach a part as files that it alone can read, and go when they are not set any more", asRoot, async () => {
  const instance = instanceWith({});
  mkdirSync(instance.paths.secrets);
  const url = "nats://user:password@127.0.0.1:4222";
  const given = await secretFiles(instance, "gateway", { natsUrl: url, bootstrapApiKey: "" });
  assert.deepEqual(Object.keys(given), ["SANDGATE_NATS_URL_FILE"]);
  const file = given.SANDGATE_NATS_URL_FILE ?? "";
  assert.equal(loadConfig({ HOME: "/home/somebody", ...given }).natsUrl, url);
  const { mode, uid, gid } = statSync(file);
  assert.deepEqual([mode & 0o777, uid, gid], [0o640, 0, accounts.gateway.gid]);
  assert.deepEqual(await secretFiles(instance, "gateway", {}), {});
  assert.ok(!existsSync(file));
});
