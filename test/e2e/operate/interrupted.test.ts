/** A set-up that is interrupted, or fails, leaves nothing with the kernel: no process, group, mount or loop device. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { loadConfig } from "../../../shared/config.ts";
import { appDir } from "../../../shared/programs.mjs";
import { mountAt } from "../../../shared/util/mounts.ts";
import { type Instance, instanceOf } from "../../../systemd/base/instance.ts";
import { endUnusedPause, findPause } from "../../../systemd/supervisor/pause.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { accountNamed, forget, groupsOf, leftBy, unusedName } from "../../helpers/machine-users.ts";
import { importRoot } from "../../helpers/own-store.ts";
import { testInstance } from "../../helpers/prepare.ts";
import { until } from "../../helpers/until.ts";
import { freeVolume } from "../../helpers/volume.ts";

const timeoutMs = 60_000;
const lookMs = 2;

const folder = fixture(temporaryFolder("interrupted", 0o755));
const user = unusedName();
const data = join(folder.path, "data");
// Of its own, so that nobody else runs anything as this user, and nothing is there before the first start.
const own = { SANDGATE_USER: user, SANDGATE_DATA_DIR: data, SANDGATE_STORAGE_DIR: join(data, "containers") };
atEnd(async () => {
  for (const name of [user, `${user}-gateway`, `${user}-nats`]) await forget(name);
});

/** The installation, as far as it has been made. */
async function made(): Promise<Instance | undefined> {
  const worker = await accountNamed(user);
  return worker && instanceOf(loadConfig({ ...process.env, ...own }), { worker, gateway: worker, nats: worker });
}

interface Ended {
  readonly exitCode: number | null;
  readonly said: string;
}

/** Starts a set-up, and ends it by a signal as soon as the moment has come. @param moment is asked again and again */
async function setUp(settings: Record<string, string>, moment: (said: string) => unknown = () => false, signal: NodeJS.Signals = "SIGINT"): Promise<Ended> {
  const env = { ...process.env, ...own, ...settings };
  const program = spawn("/bin/sh", [join(appDir, "systemd/start"), "--setup-only"], { env, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(program, "close");
  let said = "";
  for (const stream of [program.stdout, program.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  for (const endMs = Date.now() + timeoutMs; program.exitCode === null && !(await moment(said)); await sleep(lookMs))
    if (Date.now() > endMs) program.kill("SIGKILL");
  program.kill(signal);
  await ended;
  return { exitCode: program.exitCode, said };
}

async function leavesNothing(said: string): Promise<void> {
  const instance = (await made()) ?? assert.fail(said);
  let left: string[] = [];
  // The kernel gives up a loop device shortly after its mount.
  const isEmpty = async (): Promise<boolean> => {
    left = await leftBy(instance);
    return left.length === 0;
  };
  await until("nothing is left", isEmpty, 3_000).catch(() => assert.deepEqual(left, [], said));
}

const early: Record<string, (instance: Instance, said: string) => unknown> = {
  "its user has been made": () => true,
  "the user has its groups": async ({ account }) => (await groupsOf(account)).length > 0,
  "Podman has its namespace": findPause,
  "the image is being built": (_, said) => said.includes("Building the default image"),
};
for (const [index, [name, moment]] of Object.entries(early).entries()) {
  const signal = index % 2 === 0 ? "SIGINT" : "SIGTERM";
  test(`${signal} once ${name}`, async () => {
    const { exitCode, said } = await setUp({}, async (text) => ((found) => found && moment(found, text))(await made()), signal);
    assert.equal(exitCode, 130, said);
    await leavesNothing(said);
  });
}

/** Not built, so that the set-up soon comes to the volume, which is last. */
const image = { SANDGATE_DEFAULT_IMAGE: "localhost/small:latest" };

test("the image is given", async () => {
  const instance = await testInstance(data, own);
  await importRoot(instance, folder.path, [image.SANDGATE_DEFAULT_IMAGE]);
  await endUnusedPause(instance);
  atEnd(() => freeVolume(instance.paths));
});

const late: Record<string, (instance: Instance) => unknown> = {
  "the file of the volume is being made": ({ paths }) => existsSync(`${paths.volumeImage}.partial`),
  "the volume is mounted": ({ paths }) => mountAt(paths.volume),
};
for (const [name, moment] of Object.entries(late)) {
  test(`SIGINT once ${name}`, async () => {
    const instance = (await made()) ?? assert.fail("there is no user");
    await freeVolume(instance.paths);
    let hasCome = false;
    const { said } = await setUp(image, () => (hasCome = Boolean(moment(instance))));
    // A fast one may have ended meanwhile, which leaves nothing either.
    assert.ok(hasCome, said);
    await leavesNothing(said);
  });
}

test("the last step fails", async () => {
  const { exitCode, said } = await setUp({ ...image, SANDGATE_VOLUME: folder.path });
  assert.equal(exitCode, 1, said);
  assert.match(said, /SANDGATE_VOLUME/);
  await leavesNothing(said);
});
