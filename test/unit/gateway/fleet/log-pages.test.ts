/** Pages of the execution log over several workers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cursorText, mergePages, parseCursor } from "../../../../gateway/handlers/usage.ts";
import type { LogEntry } from "../../../../shared/bus/contract/commands.ts";
import type { Reply } from "../../../../shared/bus/contract/contract.ts";
import { logOf } from "../../worker/fixtures/records.ts";

const before = (one: LogEntry, after: LogEntry | undefined): boolean =>
  !after || one.started_at_ms < after.started_at_ms || (one.started_at_ms === after.started_at_ms && one.execution_id < after.execution_id);

/** A worker's page, as its log makes it. */
function pageOf(rows: readonly LogEntry[], after: LogEntry | undefined, most: number): Reply<"logs"> {
  const sorted = [...rows].sort((a, b) => b.started_at_ms - a.started_at_ms || (a.execution_id < b.execution_id ? 1 : -1));
  const left = sorted.filter((row) => before(row, after));
  return { logs: left.slice(0, most), total: rows.length, more: left.length > most };
}

for (const [limit, shares] of [
  [100, [3, 5, 2]],
  [4, [100, 100, 100]],
  [3, [1, 2, 50]],
  [1, [1, 1, 1]],
] as const) {
  test(`workers whose pages hold ${shares.join(", ")} entries give each entry once, newest first, with a limit of ${limit}`, () => {
    const rows = Array.from({ length: 60 }, (_, index) => logOf(`exec_${String((index * 37) % 60).padStart(2, "0")}`, Math.floor(index / 3)));
    const workers = [rows.filter((_, index) => index % 5 === 0), rows.filter((_, index) => index % 5 > 0), []];
    const seen: LogEntry[] = [];
    for (let after: LogEntry | undefined; ; after = seen.at(-1)) {
      const { logs, total, more } = mergePages(
        workers.map((own, index) => pageOf(own, after, Math.min(limit, shares[index] ?? 1))),
        limit,
      );
      assert.equal(total, 60);
      assert.ok(logs.length <= limit && (logs.length > 0 || !more));
      seen.push(...logs);
      if (!more) break;
    }
    assert.deepEqual(seen, pageOf(rows, undefined, 100).logs);
  });
}

test("a cursor is read as it was written, and anything else is refused", () => {
  const cursor = { fromMs: 1, toMs: 1_790_000_000_000, after: { started_at_ms: 1_780_000_000_000, execution_id: "exec_01k9zqb7c8d9e0f1g2h3j4k5m6" } };
  assert.deepEqual(parseCursor(cursorText(cursor)), cursor);
  const bad = ["x", "1.2.3", "1.2.3.exec_", "-1.2.3.exec_a", "1.2.3.exec_a\0", `1.2.3.exec_${"a".repeat(99)}`].map((text) =>
    Buffer.from(text).toString("base64url"),
  );
  for (const text of ["", "\uffff", ...bad]) assert.throws(() => parseCursor(text), { code: "invalid_request", message: /^cursor must be/ });
});
