/** How the command line reads what people write. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { parsePlace } from "../../../../shared/cli/copy/places.ts";
import { DetachKeys } from "../../../../shared/cli/keyboard.ts";
import { pick } from "../../../../shared/cli/names.ts";
import { clean } from "../../../../shared/cli/output.ts";
import { commandLine, memory, moment, variable } from "../../../../shared/cli/values.ts";

test("several words reach the program as they are; one is a command line", () => {
  const words = ["printf", "%s|", "a b", "it's", "$HOME", "", "*", "--", "\n", "ü\\"];
  assert.equal(execFileSync("/bin/sh", ["-c", commandLine(words)], { encoding: "utf8" }), "a b|it's|$HOME||*|--|\n|ü\\|");
  assert.equal(commandLine(["echo a | wc -c"]), "echo a | wc -c");
});

test("an id comes before a name, a name before the beginning of an id, and doubt is told", () => {
  const items = [
    { id: "sb_aab", name: "sb_aac" },
    { id: "sb_aac", name: "web" },
    { id: "sb_bbb", name: "aa" },
    { id: "sb_ccc", name: "two" },
    { id: "sb_ccd", name: "two" },
  ];
  const id = (name: string): string => pick("sandbox", items, name).id;
  assert.deepEqual(["sb_aac", "web", "aa", "aab", "sb_b"].map(id), ["sb_aac", "sb_aac", "sb_bbb", "sb_aab", "sb_bbb"]);
  assert.throws(() => id("two"), /two can be any of these 2 sandboxes; use an id:\n {2}sb_ccc {2}two\n {2}sb_ccd {2}two/);
  assert.throws(() => id("sb_a"), /2 sandboxes/);
  for (const unknown of ["x", "b", "sb_z", ""]) assert.throws(() => id(unknown), /there is no sandbox/);
});

test("memory, times and variables", () => {
  assert.deepEqual(["512", "512m", "512MB", "2g", "1Gi"].map(memory), [512, 512, 512, 2_048, 1_024]);
  for (const wrong of ["", "x", "1.5g", "2t", "-1"]) assert.throws(() => memory(wrong), /--memory takes MiB/);
  assert.equal(moment("--since")("2026-01-31T12:00:00Z"), "2026-01-31T12:00:00.000Z");
  const twoHoursAgo = Date.parse(moment("--since")("2h"));
  assert.ok(Date.now() - twoHoursAgo >= 7_200_000);
  assert.throws(() => moment("--since")("yesterday"), /--since takes a time/);
  assert.deepEqual(variable("A=b=c", { X: "1" }), { X: "1", A: "b=c" });
  assert.deepEqual(variable("NOBODY_HAS_THIS_VARIABLE"), {});
});

test("the ends of a copy", () => {
  assert.deepEqual(parsePlace("web:/a:b"), { kind: "remote", sandbox: "web", path: "/a:b" });
  for (const path of ["./web:/a", "/x/web:/a", "file", "..", "sub/a:b"]) assert.deepEqual(parsePlace(path), { kind: "local", path });
  assert.throws(() => parsePlace("web:a"), /must begin with \//);
});

test("ctrl-p ctrl-q is found in pieces, and all other keys go through", () => {
  const read = (...typed: number[][]): [number[], boolean] => {
    const keys = new DetachKeys();
    const all: number[] = [];
    for (const piece of typed) {
      const { bytes, isDetach } = keys.read(Uint8Array.from(piece));
      all.push(...bytes);
      if (isDetach) return [all, true];
    }
    return [all, false];
  };
  assert.deepEqual(read([1, 16, 17, 2]), [[1], true]);
  assert.deepEqual(read([16], [17]), [[], true]);
  assert.deepEqual(read([16], [5], [17]), [[16, 5, 17], false]);
  assert.deepEqual(read([16, 16, 17]), [[16], true]);
});

test("no control character of strangers reaches the terminal", () => {
  assert.equal(clean("a\u001b[2Jb\u202ec\n"), "a\ufffd[2Jb\ufffdc\n");
});
