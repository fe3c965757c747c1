/** Commands of the set-up: what they are given, and how they end. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { run } from "../../../../systemd/base/run.ts";
import { identify, isRunning } from "../../../../systemd/supervisor/processes.ts";
import { until } from "../../../helpers/until.ts";

test("a command has a PATH in its environment, and nothing else that is not given", async () => {
  assert.match(await run(["env"]), /^PATH=[^\n]*$/);
  assert.equal(await run(["/usr/bin/env"], { env: { ONLY: "this" } }), "ONLY=this");
});

test("a command that is told to stop takes along what it has started", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sandgate-run-"));
  const stop = new AbortController();
  const file = join(folder, "pid");
  const command = run(["sh", "-c", 'sleep 1000 & echo $! > "$1"; wait', "sh", file], { signal: stop.signal });
  const child = await until("it runs", () => identify(Number(readFileSync(file, "utf8")) || 0));
  stop.abort();
  await assert.rejects(command, { name: "CommandError" });
  await until("its child has ended", () => !isRunning(child));
  rmSync(folder, { recursive: true, force: true });
});
