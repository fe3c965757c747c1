/** What the set-up keeps of the programs that start commands in sandboxes. */
import assert from "node:assert/strict";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Terminal } from "../../../../systemd/base/terminal.ts";
import { createAdministrator } from "../../../../systemd/setup/administrator.ts";
import { execServer } from "../../../../systemd/setup/exec-server.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { testInstance } from "../../../helpers/prepare.ts";

test("the program of this version is made once, and that of another version stays for the containers made with it", async () => {
  using folder = temporaryFolder("exec-server", 0o711);
  const instance = await testInstance(join(folder.path, "data"), {});
  const former = join(instance.paths.podman, "exec-server-0123456789abcdef");
  writeFileSync(former, "of another version", { mode: 0o755 });
  const terminal = new Terminal(process.stderr);
  const make = () => execServer(instance, createAdministrator(terminal, new AbortController().signal), terminal);
  const path = (await make()) ?? assert.fail("it was not made");
  const { mtimeMs, mode } = statSync(path);
  assert.equal(mode & 0o777, 0o755);
  assert.equal(await make(), path);
  assert.equal(statSync(path).mtimeMs, mtimeMs);
  assert.ok(existsSync(former));
});
