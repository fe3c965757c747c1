/** What becomes of failures that nobody waits for, in this process and in one of their own. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { pino } from "pino";
import { every, inBackground } from "../../../../shared/util/background.ts";
import type { Logger } from "../../../../shared/util/log.ts";
import { until } from "../../../helpers/until.ts";

/** A logger, and what it was told. */
function noting(): { log: Logger; lines: { msg: string; err: { message: string } }[] } {
  const lines: { msg: string; err: { message: string } }[] = [];
  const log: Logger = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  return { log, lines };
}

test("what fails in the background is logged, whether it fails at once or later", async () => {
  const { log, lines } = noting();
  inBackground(log, "at once", () => {
    throw new Error("one");
  });
  inBackground(log, "later", () => Promise.reject(new Error("two")));
  inBackground(log, "never", () => undefined);
  await until("both lines", () => lines.length === 2);
  assert.deepEqual(
    lines.map(({ msg, err }) => [msg, err.message]),
    [
      ["at once", "one"],
      ["later", "two"],
    ],
  );
});

test("what is done again and again goes on after a failure", async () => {
  const { log, lines } = noting();
  const timer = every(1, log, "again", () => {
    throw new Error("each time");
  });
  await until("three failures", () => lines.length >= 3);
  clearInterval(timer);
});

function processThat(does: string): { status: number | null; stdout: string } {
  const program = `
    import { watchUncaught } from "./shared/util/background.ts";
    import { createLogger } from "./shared/util/log.ts";
    watchUncaught(createLogger("test", "info"), (code) => process.exit(code));
    ${does}
    setTimeout(() => console.log("went on"), 50);`;
  return spawnSync(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", program], { encoding: "utf8" });
}

test("a process outlives a rejection that was forgotten, and says so", () => {
  const { status, stdout } = processThat(`void Promise.reject(new Error("forgotten"));`);
  assert.equal(status, 0);
  assert.match(stdout, /"event":"unhandled_rejection".*forgotten/);
  assert.match(stdout, /went on/);
});

test("a process ends by an exception that leaves the event loop, and says so", () => {
  const { status, stdout } = processThat(`setImmediate(() => { throw new Error("uncaught"); });`);
  assert.equal(status, 1);
  assert.match(stdout, /"event":"uncaught_exception".*uncaught/);
  assert.doesNotMatch(stdout, /went on/);
});
