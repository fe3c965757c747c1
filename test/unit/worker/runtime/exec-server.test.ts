/** What the worker and the exec servers of sandboxes say to each other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { messageOf, reportOf } from "../../../../worker/runtime/exec-server/message.ts";

const process = { cwd: "/root", args: ["/bin/sh", "-c", "--", ""], env: ["A=1", "B="] };

test("a message has the terminal, the folder, the arguments and the environment, each ended by NUL", () => {
  assert.equal(messageOf({ terminal: undefined, process })?.toString(), "\0/root\0" + "4\0/bin/sh\0-c\0--\0\0" + "A=1\0B=\0");
  assert.equal(messageOf({ terminal: "/dev/pts/0", process: { ...process, args: ["ls"], env: [] } })?.toString(), "/dev/pts/0\0/root\0" + "1\0ls\0");
});

test("what does not fit in a message, or would be read as something else, gives none", () => {
  const withArgument = (argument: string) => messageOf({ terminal: undefined, process: { ...process, args: ["sh", argument] } });
  const rest = withArgument("")?.length ?? 0;
  assert.equal(withArgument("x".repeat(65_536 - rest))?.length, 65_536);
  assert.equal(withArgument("x".repeat(65_537 - rest)), undefined);
  assert.equal(withArgument("é".repeat(40_000)), undefined, "bytes count, not characters");
  assert.equal(withArgument("a\0b"), undefined);
});

test("only what a keeper writes is a report", () => {
  assert.deepEqual(reportOf("K 17"), { event: "kept", pid: 17 });
  assert.deepEqual(reportOf("S"), { event: "started" });
  assert.deepEqual(reportOf("F c 2"), { event: "failed", stage: "c", errno: 2 });
  assert.deepEqual(reportOf("X 256"), { event: "ended", status: 256 });
  for (const line of ["", "K", "K -1", "K 1e3", "K 99999999999", "S 1", "F c", "F cc 2", "F 2", "X", "X x", "E 1", "k 1"])
    assert.equal(reportOf(line), undefined, line);
});
