import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../../../../shared/config.ts";
import { pathsOf } from "../../../../systemd/base/instance.ts";
import { type Member, readMembers, writeMembers } from "../../../../systemd/fleet/members.ts";

const nkey = `U${"A".repeat(55)}`;
const gateway: Member = { role: "gateway", id: "gw_1", nkey };

test("members are kept, and workers of a former version's list are taken over", async (context) => {
  const dir = mkdtempSync(join(tmpdir(), "sandgate-members-"));
  context.after(() => rmSync(dir, { recursive: true, force: true }));
  const paths = pathsOf(loadConfig({ SANDGATE_DATA_DIR: dir }));
  assert.deepEqual(await readMembers(paths), []);
  writeFileSync(paths.formerNatsMembers, JSON.stringify([{ id: "wk_1", nkey, storeNkey: nkey }]));
  const former = await readMembers(paths);
  assert.deepEqual(former, [{ role: "worker", id: "wk_1", nkey, storeNkey: nkey }]);
  assert.equal(existsSync(paths.formerNatsMembers), false);
  await writeMembers(paths, [...former, gateway]);
  assert.deepEqual(await readMembers(paths), [...former, gateway]);
  for (const bad of ["{}", "[{}]", "nothing", JSON.stringify([{ ...gateway, role: "queen" }]), JSON.stringify([{ ...gateway, nkey: "SUSEED" }])]) {
    writeFileSync(paths.natsMembers, bad);
    await assert.rejects(readMembers(paths), /must be a list/, bad);
  }
});
