/** What the worker and the exec servers of sandboxes say to each other. */
import assert from "node:assert/strict";
import { closeSync, writeSync } from "node:fs";
import { test } from "node:test";
import { Reports } from "../../../../worker/runtime/exec-server/keeper.ts";
import { messageOf, ownWorkMessage, reportOf } from "../../../../worker/runtime/exec-server/message.ts";

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

test("what the server does itself has its arguments counted below zero", () => {
  assert.equal(ownWorkMessage(["read", "/root/é"])?.toString(), "\0/\0" + "-2\0read\0/root/é\0");
  assert.equal(ownWorkMessage(["read", "/root/a\0b"]), undefined);
  assert.equal(ownWorkMessage(["read", "x".repeat(65_536)]), undefined);
});

/** A keeper's reports, written at once, after which nobody has the pipe any more. */
function reported(text: string): Reports {
  const reports = new Reports(({ stage, errno }) => new Error(`${stage} ${errno}`));
  writeSync(reports.theirFd, text);
  closeSync(reports.theirFd);
  return reports;
}

test("who hears that a command runs knows by then that it has ended, if both were told together", async () => {
  const kept = await reported("K 5\nS\nX 256\n").kept;
  let exitCode: number | undefined;
  void kept?.exited.then((code) => {
    exitCode = code;
  });
  await kept?.started;
  await Promise.resolve();
  assert.deepEqual([kept?.pid, exitCode], [5, 1]);
});

test("a command whose keeper says no more was killed, and one that no keeper has is nobody's", async () => {
  for (const text of ["K 5\n", "K 5\nS\n", "K 5\nK 6\nX 0\n", "K 5\nnonsense\nX 0\n", `K 5\n${"x".repeat(100)}`]) {
    const kept = await reported(text).kept;
    await kept?.started;
    assert.deepEqual([kept?.pid, await kept?.exited], [5, 137], text);
  }
  for (const text of ["", "S\n", "X 0\n", "F f 11\n", "nonsense\nK 5\n"]) assert.equal(await reported(text).kept, undefined, text);
});

test("the keeper of a terminal says each time that it holds it still how much was typed and not read", async () => {
  const reports = new Reports(({ stage, errno }) => new Error(`${stage} ${errno}`));
  const say = (text: string): void => void writeSync(reports.theirFd, text);
  say("K 5\nS\n");
  const kept = (await reports.kept) ?? assert.fail("nobody has it");
  for (const unread of [0, 7]) {
    const held = kept.held();
    say(`H ${unread}\n`);
    assert.equal(await held, unread);
  }
  const never = kept.held();
  say("X 0\n");
  closeSync(reports.theirFd);
  assert.equal(await never, undefined);
});

test("a command that could not be started is a failure, whoever waits for it", async () => {
  const kept = await reported("K 5\nF c 2\n").kept;
  assert.ok(kept);
  await assert.rejects(kept.started, /^Error: c 2$/);
  await assert.rejects(kept.exited, /^Error: c 2$/);
});

test("only what a keeper writes is a report", () => {
  assert.deepEqual(reportOf("K 17"), { event: "kept", pid: 17 });
  assert.deepEqual(reportOf("S"), { event: "started" });
  assert.deepEqual(reportOf("F c 2"), { event: "failed", stage: "c", errno: 2 });
  assert.deepEqual(reportOf("H 12"), { event: "held", unread: 12 });
  assert.deepEqual(reportOf("X 256"), { event: "ended", status: 256 });
  for (const line of ["", "K", "K -1", "K 1e3", "K 99999999999", "S 1", "F c", "F cc 2", "F 2", "X", "X x", "E 1", "k 1"])
    assert.equal(reportOf(line), undefined, line);
});
