/** The names of the users that run the parts, and what is said where all parts have the same. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../../../../shared/config.ts";
import { Terminal } from "../../../../systemd/base/terminal.ts";
import { serviceAccounts } from "../../../../systemd/setup/account.ts";
import { createAdministrator } from "../../../../systemd/setup/administrator.ts";
import { usersCheck } from "../../../../systemd/supervisor/banner.ts";

const asRoot = { skip: process.getuid?.() !== 0 && "only root makes users" };

test("a name that leaves no room for those of the other users is refused before anything is made", asRoot, async () => {
  const administrator = createAdministrator(new Terminal(process.stderr), new AbortController().signal);
  const missing = (user: string) => serviceAccounts(loadConfig({ SANDGATE_USER: user }), administrator).lacks();
  const longest = "a".repeat(24);
  assert.equal(await missing(longest), `${longest}, ${longest}-gateway, ${longest}-nats`);
  for (const user of ["a".repeat(25), "Upper", "with space", "-dash", "a:b"])
    await assert.rejects(missing(user), /SANDGATE_USER is not a name for a user, or has more than 24/);
});

test("one user for all parts is said, three are named", () => {
  const one = { name: "ann", uid: 1_000, gid: 1_000, home: "/home/ann" };
  const { ok, note } = usersCheck({ worker: one, gateway: one, nats: one });
  assert.equal(ok, false);
  assert.match(note ?? "", /who takes over one has the others/);
  const other = { ...one, name: "ann-gateway", uid: 1_001 };
  assert.deepEqual(usersCheck({ worker: one, gateway: other, nats: { ...one, name: "ann-nats", uid: 1_002 } }), {
    name: "users",
    value: "ann, ann-gateway, ann-nats",
    ok: true,
  });
});
