/** What programs of the service user do to the terminal in which root has typed `npm start`: nothing but to be quoted. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { spawn } from "@lydell/node-pty";
import { appDir } from "../../../shared/programs.mjs";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { until } from "../../helpers/until.ts";

const folder = fixture(temporaryFolder("walls-terminal", 0o755));

/** All that a terminal was sent by the program, and by a shell that then reads a line of which only "typed" comes from a person. */
async function terminalOf(what: "type" | "draw"): Promise<string> {
  const program = `stty -echo; '${process.execPath}' --disable-warning=ExperimentalWarning test/helpers/hostile-commands.ts ${what} '${folder.path}'; echo "ASKED"; read -r line; echo "GOT:$line:"`;
  const terminal = spawn("/bin/sh", ["-c", program], { cwd: appDir, cols: 200, rows: 50, env: process.env });
  let shown = "";
  const ended = new Promise<void>((resolve) => terminal.onExit(() => resolve()));
  terminal.onData((text) => {
    shown += text;
  });
  try {
    await until("it asks", () => shown.includes("ASKED"));
    terminal.write("typed\r");
    await ended;
    return shown;
  } finally {
    terminal.kill("SIGKILL");
  }
}

test("types a command into root's terminal, as a command of the set-up and as a part", async () => {
  const shown = await terminalOf("type");
  assert.match(shown, /GOT:typed:/);
  assert.doesNotMatch(shown, /typed into/);
  assert.equal(shown.match(/terminal 0\r\n/g)?.length, 3, shown);
});

test("draws on root's terminal, or asks it something, with what it prints", async () => {
  const shown = await terminalOf("draw");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what is looked for
  const sequences = shown.match(/[\u0007\u0080-\u009f\u202e]|\u001b(?!\[(?:\d+m|K))/g) ?? [];
  assert.deepEqual(sequences, [], JSON.stringify(shown));
  assert.ok(shown.split("\\x1b]0;owned\\x07\\x1b[2J\\x1b[5n\\x9b31m\\u202eend").length > 4, "it is quoted");
  assert.doesNotMatch(shown, /^Sandgate is ready/m);
});

test("leaves such text in a log that root looks at", () => {
  const log = readFileSync(join(folder.path, "part.log"), "utf8");
  assert.match(log, /\\x1b\]0;owned/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what is looked for
  assert.doesNotMatch(log, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/);
});
