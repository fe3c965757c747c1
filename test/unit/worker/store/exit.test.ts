/** A process that ends at once while it writes to a real LMDB. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { appDir } from "../../../../shared/programs.mjs";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";

const path = join(fixture(temporaryFolder("exit")).path, "lmdb");
const program = `
import { open } from ${JSON.stringify(join(appDir, "node_modules/lmdb/index.js"))};
import { exitNow } from ${JSON.stringify(join(appDir, "shared/util/libc.ts"))};
const store = open({ path: ${JSON.stringify(path)} });
store.transaction(() => store.put("key", 1));
// By now another thread has begun the transaction, and waits for this one.
setTimeout(() => {
  store.transaction(() => store.put("key", 2));
  setImmediate(() => exitNow(3));
}, 100);
`;

test("a process in the middle of a transaction ends at once, with its exit code", async () => {
  const child = execFile(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", program], {
    cwd: appDir,
    timeout: 30_000,
    killSignal: "SIGKILL",
  });
  assert.deepEqual(await once(child, "exit"), [3, null]);
});
