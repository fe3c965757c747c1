/** A command that writes a million lines one by one, while others use the installation. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, type Chunk, chunksOf } from "../helpers/api.ts";
import { fixture } from "../helpers/fixture.ts";
import { residentBytes } from "../helpers/prepare.ts";
import { plain } from "../helpers/resilience.ts";
import { startStack } from "../helpers/stack.ts";
import { Witness } from "../helpers/witness.ts";

const MiB = 1024 ** 2;
const lines = 1_000_000;

const stack = await fixture(startStack({ name: "flood", settings: plain }));
const api = new Api(stack);

test("a million lines, each written by itself, arrive whole and in order beside other calls", async () => {
  const witness = await Witness.begin(stack, api);
  const id = await api.create();
  const before = [stack.gateway, stack.worker].map(({ pid }) => residentBytes(pid));
  const command = `python3 -c 'import os\nfor n in range(${lines}): os.write(1 + n % 2, b"%d\\n" % n)'`;
  const next = { stdout: 0, stderr: 1 };
  const rest = { stdout: "", stderr: "" };
  let last: Chunk | undefined;
  for await (const chunk of chunksOf(await api.stream(id, command))) {
    last = chunk;
    for (const name of ["stdout", "stderr"] as const) {
      const whole = (rest[name] + (chunk[name] ?? "")).split("\n");
      rest[name] = whole.pop() ?? "";
      for (const line of whole) {
        if (line !== String(next[name])) assert.fail(`${name} has ${line} instead of ${next[name]}`);
        next[name] += 2;
      }
    }
  }
  assert.deepEqual(last, { exit_code: 0 });
  assert.deepEqual(next, { stdout: lines, stderr: lines + 1 });
  await witness.end();
  for (const [index, { spec, pid }] of [stack.gateway, stack.worker].entries()) {
    const grown = residentBytes(pid) - (before[index] ?? 0);
    assert.ok(grown < 150 * MiB, `${spec.name} has grown by ${Math.round(grown / MiB)} MiB`);
  }
});
