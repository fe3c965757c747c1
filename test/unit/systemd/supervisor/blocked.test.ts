/** A start that is blocked says by what. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { holderOf, tryLock, waitForLock } from "../../../../systemd/supervisor/lock.ts";
import { checkPortIsFree } from "../../../../systemd/supervisor/ports.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";

const { path: folder } = fixture(temporaryFolder("blocked"));
const file = join(folder, "run.lock");

test("a lock is had by one, who is named, until it is released", async () => {
  const lock = await tryLock(file);
  assert.ok(lock);
  assert.equal(await tryLock(file), undefined);
  assert.match(holderOf(file), new RegExp(`^process ${process.pid} \\(.*node`));
  const waiting = waitForLock(file, new AbortController().signal);
  lock.release();
  (await waiting).release();
});

test("who waits for a lock can be told to stop", async () => {
  const lock = await tryLock(file);
  const stop = new AbortController();
  const waiting = waitForLock(file, stop.signal);
  stop.abort();
  await assert.rejects(waiting, { name: "AbortError" });
  lock?.release();
});

test("the kernel gives a lock back when its holder is killed", async () => {
  const program = `import { tryLock } from "./systemd/supervisor/lock.ts"; await tryLock(${JSON.stringify(file)}); console.log("held"); setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  await once(holder.stdout, "data");
  assert.equal(await tryLock(file), undefined);
  assert.match(holderOf(file), new RegExp(`^process ${holder.pid} `));
  holder.kill("SIGKILL");
  await once(holder, "exit");
  const lock = await tryLock(file);
  assert.ok(lock);
  lock.release();
});

test("a port that is taken is told with the process that has it and the setting for another", async () => {
  const server = createServer().listen({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const user = { part: "The gateway", setting: "SANDGATE_PORT" };
  await assert.rejects(checkPortIsFree("127.0.0.1", port, user), new RegExp(`port ${port} on 127.0.0.1 is in use by process ${process.pid} .*SANDGATE_PORT`));
  server.close();
});
