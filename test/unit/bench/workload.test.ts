/** Workloads: those that come with the bench are good, and what is wrong in one is told with its place. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { checkWorkload, profileNames, readWorkload } from "../../../bench/load/workload.ts";
import { atEnd } from "../../helpers/fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "sandgate-workloads-"));
atEnd(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

test("every profile is a workload", async () => {
  assert.deepEqual(profileNames(), ["agents", "churn", "first-command", "sessions", "streams"]);
  for (const name of profileNames()) assert.ok((await readWorkload(name)).workload.steps.length > 0, name);
  const { phases } = (await readWorkload("first-command")).workload;
  assert.deepEqual(
    phases?.map(({ count, everyMs }) => [count, everyMs]),
    [
      [100, undefined],
      [100, 200],
      [100, 0],
    ],
  );
});

test("a workload is read from JSON and from TypeScript", async () => {
  const workload = { about: "mine", steps: [{ name: "a", execute: "true" }] };
  assert.deepEqual(await readWorkload(file("mine.json", JSON.stringify(workload))), { name: "mine", workload });
  const typed = file("typed.ts", `const command: string = "true";\nexport default { about: "mine", steps: [{ name: "a", execute: command }] };\n`);
  assert.deepEqual(await readWorkload(typed), { name: "typed", workload });
});

test("a name that no profile has is refused, with the one that may be meant", async () => {
  await assert.rejects(readWorkload("agent"), /there is no workload agent, only agents; there are agents, churn/);
  await assert.rejects(readWorkload("./nowhere.json"), /nowhere\.json: ENOENT/);
  await assert.rejects(readWorkload(file("mine.yaml", "a: 1")), /a workload is a \.json or \.ts file/);
});

test("a syntax error is told with its line", async () => {
  await assert.rejects(readWorkload(file("bad.json", '{\n  "about": "x"\n  "steps": []\n}')), /bad\.json: .*\(line 3 column 3\)/);
  const bad = file("throws.ts", 'const steps: object[] = [];\nthrow new Error("no steps");\nexport default { steps };\n');
  await assert.rejects(readWorkload(bad), /throws\.ts: no steps \(line 2, column 7\)/);
  await assert.rejects(readWorkload(file("empty.ts", "export const other = 1;\n")), /empty\.ts: the file has no default export/);
});

test("what does not fit is told with the field", () => {
  const step = { name: "a", execute: "true" };
  const wrong: readonly [object, RegExp][] = [
    [[], /^w\.json: the workload must be an object$/],
    [{ steps: [step] }, /^w\.json: Missing required field: about$/],
    [{ about: "x", steps: [] }, /^w\.json: steps must be a list of 1 to 50 steps$/],
    [{ about: "x", steps: [step, { ...step, name: "b", weight: 0 }] }, /^w\.json: steps\[1\]\.weight must be between 0\.001 and 1000$/],
    [{ about: "x", steps: [{ name: "a", exec: "true" }] }, /^w\.json: Unknown field: steps\[0\]\.exec$/],
    [{ about: "x", steps: [{ name: "a", excute: "true" }] }, /^w\.json: Unknown field: steps\[0\]\.excute; did you mean execute\?$/],
    [{ about: "x", steps: [{ name: "a" }] }, /^w\.json: steps\[0\] \(a\) must have exactly one of execute, stream, session, upload, download, create, read$/],
    [{ about: "x", steps: [{ ...step, stream: "true" }] }, /exactly one of .*, not execute and stream$/],
    [{ about: "x", steps: [step, step] }, /^w\.json: steps\[1\] \(a\): another step has the same name$/],
    [
      { about: "x", steps: [{ name: "a", upload: { path: "relative", bytes: 1 } }] },
      /^w\.json: steps\[0\]\.upload\.path must be an absolute path in the sandbox$/,
    ],
    [{ about: "x", steps: [{ name: "a", read: "all" }] }, /^w\.json: steps\[0\]\.read must be "list", "info" or "status"$/],
    [{ about: "x", sandboxes: 0, steps: [step] }, /^w\.json: sandboxes must be an integer between 1 and 1000$/],
    [{ about: "x", sandbox: { cpus: 2 }, steps: [step] }, /^w\.json: Unknown field: sandbox\.cpus$/],
    [{ about: "x", phases: [{ name: "p", count: 0 }], steps: [step] }, /^w\.json: phases\[0\]\.count must be an integer between 1 and 100000$/],
    [{ about: "x", phases: [1, 2].map(() => ({ name: "p", count: 1 })), steps: [step] }, /^w\.json: two phases have the same name$/],
  ];
  for (const [value, message] of wrong) assert.throws(() => checkWorkload(value, "w.json"), { name: "UsageError", message }, JSON.stringify(value));
});
