/** `npm start` whose supervisor is killed: nothing of it stays, and the next one goes on with what there was. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Sandgate } from "../../../shared/client/index.ts";
import { appDir } from "../../../shared/programs.mjs";
import { mountAt } from "../../../shared/util/mounts.ts";
import { accountEnvironment, inPodmanNamespace } from "../../../systemd/base/as-account.ts";
import { run } from "../../../systemd/base/run.ts";
import { identify, isRunning, type ProcessId, signalProcess } from "../../../systemd/supervisor/processes.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { OtlpReceiver } from "../../helpers/otlp.ts";
import { testPort } from "../../helpers/ports.ts";
import { testInstance } from "../../helpers/prepare.ts";
import { until } from "../../helpers/until.ts";
import { freeVolume } from "../../helpers/volume.ts";

const startMs = 120_000;
let starter: ChildProcess | undefined;

const { path: dataDir } = fixture(temporaryFolder("supervisor", 0o755));
const instance = await testInstance(dataDir, {});
const port = await testPort();
const url = `http://127.0.0.1:${port}`;
const receiver = await fixture(OtlpReceiver.start());
const headerKey = randomBytes(12).toString("hex");
const settings = {
  SANDGATE_USER: instance.config.user,
  SANDGATE_DATA_DIR: dataDir,
  SANDGATE_STORAGE_DIR: instance.paths.storage,
  SANDGATE_PORT: String(port),
  SANDGATE_METRICS_PORT: "0",
  SANDGATE_POOL_SIZE: "0",
  OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
  OTEL_EXPORTER_OTLP_HEADERS: `authorization=${headerKey}`,
  OTEL_BSP_SCHEDULE_DELAY: "100",
};

atEnd(async () => {
  starter?.kill("SIGKILL");
  for (const { process } of parts()) signalProcess(process, "SIGKILL");
  for (const id of await containers()) await podman("rm", "--force", "--time", "0", id);
  await freeVolume(instance.paths);
  await until("podman has left its home", () => {
    rmSync(instance.paths.data, { recursive: true, force: true });
    return true;
  });
});

test("all parts end by themselves when their supervisor is killed, with work in progress, and the next start has the sandbox and the volume again", async () => {
  let supervisor = await start();
  const client = new Sandgate({ baseUrl: url, apiKey: readFileSync(instance.paths.apiKey, "utf8").trim() });
  const sandbox = await client.sandboxes.create({ image: "default", name: "survivor" });
  await sandbox.upload("/root/kept", "as it was");
  const session = await sandbox.session({ command: "while :; do echo tick; sleep 0.1; done" });
  const running = sandbox.execute("sleep 1000").catch((error: unknown) => error);
  await session[Symbol.asyncIterator]().next();
  const before = parts();
  assert.deepEqual(before.map(({ name }) => name).sort(), ["gateway", "nats", "worker"]);
  assert.equal((await containers("running")).length, 1);
  await until("both parts send spans, with the key", () => {
    const services = new Set(receiver.spans.map(({ resource }) => resource["service.name"]));
    return services.size === 2 && receiver.headers.every(({ authorization }) => authorization === headerKey);
  });
  // Other processes of the same user could read it there.
  for (const { name, process } of before) assert.ok(!readFileSync(`/proc/${process.pid}/environ`, "utf8").includes(headerKey), name);
  const { volume, volumeImage } = instance.paths;
  const device = mountAt(volume)?.device;
  assert.ok(device, "the volume is mounted");
  writeFileSync(join(volume, "kept"), "");

  signalProcess(supervisor, "SIGKILL");
  await until("all parts are gone", () => !before.some(({ process }) => isRunning(process)), startMs);
  await until("its container stands still", async () => (await containers("running")).length === 0);
  session.detach();
  assert.equal(mountAt(volume)?.device, device, "nobody was left to unmount the volume");
  assert.ok((await running) instanceof Error, "the call in progress fails");

  supervisor = await start();
  assert.equal((await (await client.sandboxes.get(sandbox.id)).execute("cat /root/kept")).stdout, "as it was");
  assert.equal(mountAt(volume)?.device, device, "it is used as it is");
  assert.ok(existsSync(join(volume, "kept")));
  signalProcess(supervisor, "SIGTERM");
  await until("the second one has stopped", () => !isRunning(supervisor), startMs);
  assert.deepEqual(parts(), []);
  assert.equal(mountAt(volume), undefined, "it is unmounted at the end");
  assert.ok(existsSync(volumeImage) && !existsSync(join(volume, "kept")));
});

/** What `npm start` runs; resolves with the supervisor, which that becomes, when it is ready. */
async function start(): Promise<ProcessId> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("SANDGATE_"));
  const env = { ...Object.fromEntries(own), ...settings };
  const child = spawn("/bin/sh", [join(appDir, "systemd/start")], { env, stdio: ["ignore", "pipe", "pipe"] });
  starter = child;
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes: Buffer) => (said += bytes));
  const ended = once(child, "exit").then(() => Promise.reject(new Error(`npm start ended:\n${said}`)));
  ended.catch(() => {});
  await Promise.race([until("npm start is ready", () => said.includes("Sandgate is ready."), startMs), ended]);
  const supervisor = identify(child.pid ?? 0);
  assert.ok(supervisor);
  return supervisor;
}

/** The parts that the supervisor has noted. */
function parts(): { name: string; process: ProcessId }[] {
  const folder = instance.paths.supervisor;
  const files = readdirSync(folder).filter((file) => file.endsWith(".process.json"));
  return files.map((file) => ({ name: file.split(".", 1)[0] ?? "", process: JSON.parse(readFileSync(join(folder, file), "utf8")) as ProcessId }));
}

function podman(...args: string[]): Promise<string> {
  return run(inPodmanNamespace(instance, ["podman", ...args]), { env: accountEnvironment(instance), cwd: "/" });
}

async function containers(status?: string): Promise<string[]> {
  const worker = readFileSync(join(instance.paths.supervisor, "worker-id"), "utf8").trim();
  const filters = [`label=sandgate.worker=${worker}`, ...(status ? [`status=${status}`] : [])].flatMap((filter) => ["--filter", filter]);
  return (await podman("ps", "--all", "--quiet", "--no-trunc", ...filters)).split("\n").filter(Boolean);
}
