/** `npm start` whose supervisor is killed: nothing of it stays, and the next one goes on with what there was. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Sandgate } from "../../../shared/client/index.ts";
import { mountAt } from "../../../shared/util/mounts.ts";
import { isRunning, signalProcess } from "../../../systemd/supervisor/processes.ts";
import { fixture } from "../../helpers/fixture.ts";
import { npmStart } from "../../helpers/local-users.ts";
import { NpmStart, startMs } from "../../helpers/npm-start.ts";
import { OtlpReceiver } from "../../helpers/otlp.ts";
import { until } from "../../helpers/until.ts";

const receiver = await fixture(OtlpReceiver.start());
const headerKey = randomBytes(12).toString("hex");
const npm = await fixture(
  NpmStart.prepare("supervisor", {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=${headerKey}`,
    OTEL_BSP_SCHEDULE_DELAY: "100",
  }),
);

test("all parts end by themselves when their supervisor is killed, with work in progress, and the next start has the sandbox and the volume again", async () => {
  let supervisor = await npm.start();
  // Root can have everything.
  if (process.getuid?.() === 0) assert.deepEqual(npm.checks("!"), []);
  assert.deepEqual(
    npm.checks("✓").find(([name]) => name === "volume"),
    ["volume", npm.instance.paths.volume],
  );
  const client = new Sandgate({ baseUrl: npm.url, apiKey: npm.apiKey });
  const sandbox = await client.sandboxes.create({ image: "default", name: "survivor" });
  await sandbox.upload("/root/kept", "as it was");
  const session = await sandbox.session({ command: "while :; do echo tick; sleep 0.1; done" });
  const running = sandbox.execute("sleep 1000").catch((error: unknown) => error);
  await session[Symbol.asyncIterator]().next();
  const before = npm.parts();
  assert.deepEqual(before.map(({ name }) => name).sort(), ["gateway", "nats", "worker"]);
  if (process.getuid?.() === 0 && existsSync("/proc/self/autogroup")) {
    for (const { name, process } of before) assert.match(readFileSync(`/proc/${process.pid}/autogroup`, "utf8"), /nice -10$/m, name);
  }
  // Sandboxes have not inherited it.
  assert.doesNotMatch((await sandbox.execute("nice; cat /proc/self/autogroup /proc/1/autogroup")).stdout, /nice -|^-/m);
  assert.equal((await npm.containers("running")).length, 1);
  await until("both parts send spans, with the key", () => {
    const services = new Set(receiver.spans.map(({ resource }) => resource["service.name"]));
    return services.size === 2 && receiver.headers.every(({ authorization }) => authorization === headerKey);
  });
  // Other processes of the same user could read it there.
  for (const { name, process } of before) assert.ok(!readFileSync(`/proc/${process.pid}/environ`, "utf8").includes(headerKey), name);
  // Whoever only prepares the machine takes nothing away from those who run.
  const { exitCode, output } = await npmStart(["--setup-only"], npm.settings);
  assert.equal(exitCode, 1, output);
  assert.match(output, /Sandgate is already running/);
  assert.equal((await sandbox.snapshot({ name: "taken" })).name, "taken");
  const { volume, volumeImage } = npm.instance.paths;
  const device = mountAt(volume)?.device;
  assert.ok(device, "the volume is mounted");
  writeFileSync(join(volume, "kept"), "");

  signalProcess(supervisor, "SIGKILL");
  await until("all parts are gone", () => !before.some(({ process }) => isRunning(process)), startMs);
  await until("its container stands still", async () => (await npm.containers("running")).length === 0);
  session.detach();
  assert.equal(mountAt(volume)?.device, device, "nobody was left to unmount the volume");
  assert.ok((await running) instanceof Error, "the call in progress fails");

  supervisor = await npm.start();
  assert.equal((await (await client.sandboxes.get(sandbox.id)).execute("cat /root/kept")).stdout, "as it was");
  assert.equal(mountAt(volume)?.device, device, "it is used as it is");
  assert.ok(existsSync(join(volume, "kept")));
  signalProcess(supervisor, "SIGTERM");
  await until("the second one has stopped", () => !isRunning(supervisor), startMs);
  assert.deepEqual(npm.parts(), []);
  assert.equal(mountAt(volume), undefined, "it is unmounted at the end");
  assert.ok(existsSync(volumeImage) && !existsSync(join(volume, "kept")));
});

test("what is turned off is said at the start, each with its reason", async () => {
  const supervisor = await npm.start({ SANDGATE_VOLUME: "none", SANDGATE_CONTROL_GROUPS: "none" });
  const lacking = npm.checks("!");
  const noteOf = (wanted: string): string | undefined => lacking.find(([name]) => name === wanted)?.at(-1);
  assert.equal(noteOf("volume"), "turned off by SANDGATE_VOLUME; the size of sandboxes is watched, and snapshots copy files");
  for (const name of ["storage_limit", "user_ids"]) assert.equal(noteOf(name), "needs the volume and its helper", name);
  // Where systemd delegates groups, Podman has them all the same.
  for (const name of existsSync("/run/systemd/system") ? [] : ["memory_limit", "cpu_limit", "pids_limit"])
    assert.equal(noteOf(name), "no control groups: turned off by SANDGATE_CONTROL_GROUPS", name);
  signalProcess(supervisor, "SIGTERM");
  await until("it has stopped", () => !isRunning(supervisor), startMs);
});
