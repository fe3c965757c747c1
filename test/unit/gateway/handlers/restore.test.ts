/** What a restored sandbox is given, and which worker makes it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Reach, workersFor } from "../../../../gateway/fleet/placement.ts";
import { refuseTooSmall, settingsOf } from "../../../../gateway/handlers/restore.ts";
import type { Manifest } from "../../../../shared/bus/entries.ts";
import { SandgateError } from "../../../../shared/errors.ts";
import { derivedName, newId, numberedName, shortOf } from "../../../../shared/util/ids.ts";
import { GiB, presentWorker as worker } from "../../../helpers/present-worker.ts";

const manifest: Manifest = {
  image: "default",
  base: { id: "0".repeat(64), env: [], working_dir: "/", user: "" },
  layers: [
    { id: "layer_b", size_bytes: 2 * GiB },
    { id: "layer_a", size_bytes: 1.25 * GiB },
  ],
  cpu: 2,
  memory: 1024,
  storage: 8,
  network: "none",
  env_vars: { KEPT: "1", CHANGED: "old" },
};
const unset = { cpu: undefined, memory: undefined };

test("what the caller does not say is as the snapshot has it", () => {
  assert.deepEqual(settingsOf(manifest, unset), { cpu: 2, memory: 1024, storage: 8, env_vars: { KEPT: "1", CHANGED: "old" } });
});

test("what the caller says comes first; variables are laid over those of the snapshot", () => {
  const settings = settingsOf(manifest, { cpu: 1, memory: 256, storage: 20, env_vars: { CHANGED: "new", ADDED: "" } });
  assert.deepEqual(settings, { cpu: 1, memory: 256, storage: 20, env_vars: { KEPT: "1", CHANGED: "new", ADDED: "" } });
  assert.deepEqual(manifest.env_vars, { KEPT: "1", CHANGED: "old" }, "the snapshot itself is as it was");
});

test("storage may be smaller than the snapshot's, but not than what its layers hold; both numbers are named", () => {
  for (const storage of [4, 8, 1_000]) assert.doesNotThrow(() => refuseTooSmall(manifest, storage));
  assert.throws(() => refuseTooSmall(manifest, 3), { code: "unprocessable", message: /storage of 3 GB is less than the 3\.3 GB/ });
  assert.throws(() => refuseTooSmall(manifest, 1), { code: "unprocessable" });
});
const big = { memory_free_bytes: 64 * GiB };
const full = { accepts: false };
const chosen = (reach: Reach, ...workers: ReturnType<typeof worker>[]): string[] =>
  workersFor({ worker_id: "own", reach }, workers, { memoryBytes: 0, image: undefined, seed: "" }).map(({ worker: { id } }) => id);

test("the worker that took a snapshot restores it, however much room others have", () => {
  for (const archived of ["local", "pending", "memory", "temporary"] as const) assert.deepEqual(chosen(archived, worker("other", big), worker("own")), ["own"]);
  assert.deepEqual(chosen("done", worker("other", big), worker("own")), ["own", "other"]);
});

test("others restore it, the best one first, when it is archived and its own worker is gone or full", () => {
  assert.deepEqual(chosen("done", worker("small"), worker("big", big), worker("full", full)), ["big", "small"]);
  assert.deepEqual(chosen("done", worker("own", full), worker("other")), ["other"]);
});

test("when nobody can restore it the message says why", () => {
  const refused = (message: RegExp, reach: Reach, ...workers: ReturnType<typeof worker>[]): void =>
    assert.throws(
      () => chosen(reach, ...workers),
      (error) => error instanceof SandgateError && error.code === "unavailable" && message.test(error.message),
    );
  refused(/worker that took this snapshot is gone.* not archived yet/, "pending", worker("other"));
  refused(/worker that took this snapshot has no room.* not archived yet/, "pending", worker("own", full), worker("other"));
  refused(/is gone.* not archived, by a setting/, "local");
  refused(/has no room.* copies are made where their source is/, "temporary", worker("own", full), worker("other"));
  refused(/is gone.* no other worker has the memory/, "memory", worker("other"));
  refused(/has no room.* no other worker has the memory/, "memory", worker("own", full), worker("other"));
  refused(/has no room.* no other worker has room/, "done", worker("own", full), worker("other", full));
  refused(/is gone.* no other worker has room/, "done");
});

test("a name made from another one tells both, differs each time and keeps to the bound of names", () => {
  const id = newId("sandbox");
  assert.equal(derivedName("web", "clone", id), `web-clone-${shortOf(id)}`);
  assert.notEqual(derivedName("web", "clone", newId("sandbox")), derivedName("web", "clone", newId("sandbox")));
  for (const kind of ["clone", "fork", "snap"] as const) {
    const name = derivedName("a".repeat(63), kind, id);
    assert.match(name, /^a+-[a-z]+-[0-9a-z]+$/);
    assert.equal(name.length, 63);
    assert.ok(name.endsWith(`-${kind}-${shortOf(id)}`));
  }
});

test("of several with one name each has its number, and keeps to the bound of names", () => {
  assert.deepEqual(
    [1, 2, 100].map((number) => numberedName("web", number)),
    ["web-1", "web-2", "web-100"],
  );
  assert.equal(numberedName("a".repeat(63), 100), `${"a".repeat(59)}-100`);
});
