/** The folder in which a sandbox finds the worker, and sees which generation it is. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { MeetingPlaces } from "../../../../../worker/runtime/exec-server/meeting-places.ts";
import { temporaryFolder } from "../../../../helpers/folder.ts";

test("every start has a generation of its own, which everybody in the sandbox can read", () => {
  using folder = temporaryFolder("meeting");
  const places = new MeetingPlaces(join(folder.path, "meeting"));
  const read = (id: string): string => readFileSync(join(places.of(id), "generation"), "utf8");
  const seen: string[] = [];
  for (const id of ["sb_1", "sb_1", "sb_2"]) {
    places.make(id);
    seen.push(read(id));
  }
  for (const generation of seen) assert.match(generation, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n$/);
  assert.equal(new Set(seen).size, 3);
  assert.deepEqual(readdirSync(places.of("sb_1")), ["generation"]);
  assert.equal(statSync(join(places.of("sb_1"), "generation")).mode & 0o777, 0o644);
  assert.equal(statSync(places.of("sb_1")).mode & 0o777, 0o711);
  places.remove("sb_1");
  assert.ok(!existsSync(places.of("sb_1")));
});
