/** The privileged helper on a real volume, with the worker's client and with what only an attacker would send (systemd/helper/THREATS.md). */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, statSync, truncateSync } from "node:fs";
import { createConnection, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterEach, test } from "node:test";
import { SandgateError } from "../../../../shared/errors.ts";
import { requestBytesMax, requestsMax } from "../../../../shared/privileged.ts";
import { processIds } from "../../../../shared/util/proc.ts";
import { asAccount } from "../../../../systemd/base/as-account.ts";
import { run } from "../../../../systemd/base/run.ts";
import { helperCommand, relay } from "../../../../systemd/helper/connect.ts";
import { serve } from "../../../../systemd/helper/serve.ts";
import { unmount } from "../../../../systemd/volume/unmount.ts";
import { fileSystemBytes, isVolume, type Volume } from "../../../../systemd/volume/volume.ts";
import { PrivilegedHelper } from "../../../../worker/runtime/privileged/helper.ts";
import { commandLineOf } from "../../../../worker/runtime/process/proc.ts";
import { fixture } from "../../../helpers/fixture.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { testInstance } from "../../../helpers/prepare.ts";
import { until } from "../../../helpers/until.ts";
import { TestVolume } from "../../../helpers/volume.ts";

const MiB = 1024 ** 2;
const GiB = 1024 ** 3;
const folder = fixture(temporaryFolder("helper", 0o711));
const instance = await testInstance(join(folder.path, "data"), {});
const volumes = [
  await fixture(TestVolume.make(instance, join(instance.paths.data, "one"))),
  await fixture(TestVolume.make(instance, join(instance.paths.data, "other"))),
];
const [volume, other] = volumes.map(({ found }) => (isVolume(found) ? found : assert.fail(found.reason))) as [Volume, Volume];
const image = volume.image ?? assert.fail();
/** None that could be shown anything: what it can be is in ids.test.ts. */
const worker = { pid: process.pid, account: instance.account };
const images = { dir: instance.paths.memory, floorBytes: 0, keyFile: instance.paths.memoryKey };

const opened: PrivilegedHelper[] = [];
afterEach(() => opened.splice(0).forEach((helper) => helper.close()));

const asWorker = (...argv: string[]): Promise<string> => run(asAccount(instance.account, argv), { cwd: "/" });
let serial = 0;
/** A new subvolume. */
async function subvolume({ dir }: Volume): Promise<{ path: string; id: number }> {
  const path = join(dir, `sandbox-${serial++}`);
  await asWorker("btrfs", "subvolume", "create", path);
  return { path, id: Number(/\d+/.exec(await run(["btrfs", "inspect-internal", "rootid", path]))?.[0]) };
}

/** Connected sockets. */
async function socketPair(): Promise<[ours: Socket, theirs: Socket]> {
  const path = join(folder.path, `socket-${serial++}`);
  const server = createServer().listen(path);
  await once(server, "listening");
  const ours = createConnection(path);
  const [theirs] = (await once(server, "connection")) as [Socket];
  server.close();
  ours.on("error", () => {});
  return [ours, theirs];
}
async function connect(served: Volume = volume): Promise<Socket> {
  const [ours, theirs] = await socketPair();
  serve(theirs, theirs, { volume: served, images, worker });
  return ours;
}
async function client(served?: Volume): Promise<PrivilegedHelper> {
  const helper = new PrivilegedHelper(await connect(served));
  opened.push(helper);
  return helper;
}
const limitOf = async (path: string): Promise<string | undefined> =>
  (await run(["btrfs", "qgroup", "show", "-r", "-f", "--raw", path])).split("\n").at(-1)?.trim().split(/\s+/)[3];
const failsWith = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof SandgateError && error.code === code && message.test(`${error.message} ${String(error.cause)}`);
/** Whether the connection is ended without an answer. */
async function isEnded(request: string): Promise<boolean> {
  const connection = await connect();
  connection.write(request);
  const answers = await text(connection);
  return answers === "";
}

test("a limit holds from then on, can be raised and lowered, and tells the program that it is one", async () => {
  const { path, id } = await subvolume(volume);
  const helper = await client();
  const write = (mib: number) => asWorker("dd", "if=/dev/zero", `of=${path}/file`, "bs=1M", `count=${mib}`, "conv=fsync");
  await helper.setQuota(id, 8 * MiB);
  await assert.rejects(write(9), /Disk quota exceeded/);
  await helper.setQuota(id, 32 * MiB);
  await write(9);
  await helper.setQuota(id, 4 * MiB);
  await assert.rejects(asWorker("dd", "if=/dev/zero", `of=${path}/more`, "bs=1M", "count=1", "conv=fsync"), /Disk quota exceeded/);
});

test("many requests at once are all answered, more than may wait at the helper", async () => {
  const { path, id } = await subvolume(volume);
  const helper = await client();
  await Promise.all(Array.from({ length: 2 * requestsMax }, (_, index) => helper.setQuota(id, (index + 1) * MiB)));
  assert.equal(await limitOf(path), String(2 * requestsMax * MiB));
});

test("a limit is set on no other file system, though it has the same ids", async () => {
  const [own, foreign] = [await subvolume(volume), await subvolume(other)];
  const helper = await client();
  for (let id = 256; id <= Math.max(own.id, foreign.id); id++) await helper.setQuota(id, 8 * MiB).catch(() => {});
  assert.equal(await limitOf(own.path), String(8 * MiB));
  assert.equal(await limitOf(foreign.path), "none");
});

test("a subvolume that is not there has no limit, and the helper goes on", async () => {
  const helper = await client();
  await assert.rejects(helper.setQuota(2 ** 40, 8 * MiB), failsWith("internal_error", /quota\.set: failed: .*No such file/s));
  await helper.setQuota((await subvolume(volume)).id, 8 * MiB);
});

test("what is not exactly as declared ends the connection and does nothing", async () => {
  const { path, id } = await subvolume(volume);
  const valid = { id: 1, verb: "quota.set", subvolume: id, bytes: MiB };
  const requests: unknown[] = [
    { ...valid, verb: "quota.unset" },
    { ...valid, verb: "constructor" },
    { ...valid, verb: ["quota.set"] },
    { ...valid, path: "/" },
    { ...valid, dir: "/etc", bytes: 1 },
    { id: 1, verb: "quota.set", subvolume: id },
    { id: 1, verb: "volume.grow" },
    ...[0, -1, 0.5, 2 ** 53, "1G", null].map((bytes) => ({ id: 1, verb: "volume.grow", bytes })),
    { id: 1, verb: "volume.grow", bytes: 1, file: 1 },
    { verb: "volume.grow", bytes: 1 },
    ...[5, 0, 255, -1, 1.5, 2 ** 48, 2 ** 53, "256", `0/${id}`, `${id} /`, [id], null, true, { toString: 256 }].map((subvolume) => ({ ...valid, subvolume })),
    ...[0, -1, 0.5, 2 ** 53, "none", "1G", [MiB], null].map((bytes) => ({ ...valid, bytes })),
    ...[-1, "1", null, {}].map((each) => ({ ...valid, id: each })),
    [valid],
    "quota.set",
    null,
  ];
  for (const request of requests) assert.ok(await isEnded(`${JSON.stringify(request)}\n`), JSON.stringify(request));
  const exact = JSON.stringify(valid);
  for (const line of ["", "{", `${exact}}`, `${exact} ${exact}`, `\0${exact}`, exact.replace("1048576", "1e999"), exact.replace("{", '{"__proto__":{},')])
    assert.ok(await isEnded(`${line}\n`), line);
  assert.equal(await limitOf(path), "none");
});

test("a request that never ends takes no memory, and ends the connection when it does", async () => {
  const connection = await connect();
  connection.resume();
  for (let sent = 0; sent < 16 * MiB; sent += 64 * 1024) if (!connection.write("x".repeat(64 * 1024))) await once(connection, "drain");
  connection.write("\n");
  await once(connection, "end");
  assert.ok(await isEnded(`{"id":1,"verb":"volume.grow","bytes":1${" ".repeat(requestBytesMax)}}\n`));
});

test("more requests than may wait end the connection, also when their replies are never read", async () => {
  const { id } = await subvolume(volume);
  const lines = (count: number): string => `{"id":1,"verb":"quota.set","subvolume":${id},"bytes":1048576}\n`.repeat(count);
  assert.ok(await isEnded(lines(requestsMax + 1)));
  const [ours, theirs] = await socketPair();
  const unread = new Writable({ write: () => {} });
  serve(theirs, unread, { volume, images, worker });
  ours.write(lines(requestsMax));
  await until("all are carried out", () => unread.writableLength > requestsMax * 10);
  ours.write(lines(1));
  await once(ours.resume(), "end");
});

test("the volume grows while it is used, by a step at least, and no further than its setting", async () => {
  const small = { ...volume, image: { ...image, bytesMax: 6 * GiB } };
  const { path, id } = await subvolume(volume);
  const helper = await client(small);
  await helper.setQuota(id, 5 * GiB);
  // A growth that was interrupted has left the file larger.
  truncateSync(image.file, 5 * GiB);
  await helper.growVolume(1);
  assert.deepEqual([await fileSystemBytes(volume.dir), statSync(image.file).size], [5 * GiB, 5 * GiB]);
  await asWorker("fallocate", "--length", String(4.5 * GiB), `${path}/large`);
  await Promise.allSettled(Array.from({ length: 10 }, () => helper.growVolume(1)));
  assert.deepEqual([await fileSystemBytes(volume.dir), statSync(image.file).size], [6 * GiB, 6 * GiB]);
  await assert.rejects(helper.growVolume(1), failsWith("insufficient_storage", /largest size/));
  await asWorker("rm", `${path}/large`);
});

test("it does not grow where the disk has no room above its floor, nor when it is the operator's", async () => {
  const floored = { ...volume, image: { ...image, floorBytes: Number.MAX_SAFE_INTEGER } };
  const before = statSync(image.file).size;
  await assert.rejects((await client(floored)).growVolume(1), failsWith("insufficient_storage", /the disk has no room/));
  await assert.rejects((await client({ dir: volume.dir })).growVolume(1), failsWith("insufficient_storage", /operator/));
  assert.equal(statSync(image.file).size, before);
});

test("nothing is done in the folder below when the volume is not mounted", async () => {
  assert.ok(await unmount(other.dir));
  await assert.rejects((await client(other)).setQuota(256, MiB), failsWith("internal_error", /not mounted/));
  await assert.rejects((await client(other)).growVolume(1), failsWith("internal_error", /not mounted/));
  assert.ok(existsSync(other.dir));
});

test("requests fail when the helper has gone, and those that would break the rules are not sent", async () => {
  const [ours, theirs] = await socketPair();
  const helper = new PrivilegedHelper(ours);
  const waiting = helper.setQuota(256, MiB);
  theirs.destroy();
  await assert.rejects(waiting, failsWith("unavailable", /lost the helper/));
  await assert.rejects(helper.growVolume(1), failsWith("unavailable", /lost the helper/));
  const { id } = await subvolume(volume);
  const sound = await client();
  await assert.rejects(sound.setQuota(5, MiB));
  await assert.rejects(sound.setQuota(id, 0.5));
  await sound.setQuota(id, MiB);
});

test("a helper that listens on a socket is reached again after its connection has ended", async () => {
  const path = join(folder.path, "listening.socket");
  const connections: Socket[] = [];
  const server = createServer((socket) => {
    connections.push(socket);
    serve(socket, socket, { volume, images, worker });
  }).listen(path);
  await once(server, "listening");
  const helper = PrivilegedHelper.at(path);
  const { path: limited, id } = await subvolume(volume);
  await helper.setQuota(id, MiB);
  const [first] = connections;
  first?.destroy();
  await until("a request succeeds", () => helper.setQuota(id, 2 * MiB).then(() => true));
  assert.equal(await limitOf(limited), String(2 * MiB));
  assert.equal(connections.length, 2);
  server.close();
  connections[1]?.destroy();
  await until("it is gone", () => helper.setQuota(id, MiB).then(() => false, failsWith("unavailable", /lost the helper/)));
  helper.close();
  await assert.rejects(helper.setQuota(id, MiB), failsWith("unavailable", /lost the helper/));
});

test("a start without the rights of root has a helper in a process of its own, for as long as the connection lasts", async () => {
  const [ours, theirs] = await socketPair();
  const { path, id } = await subvolume(volume);
  const command = helperCommand({ volume: { ...volume, image: { ...image, floorBytes: Number.MAX_SAFE_INTEGER } }, images, worker }, instance.paths);
  relay(theirs, command);
  const helper = new PrivilegedHelper(ours);
  await helper.setQuota(id, 3 * MiB);
  assert.equal(await limitOf(path), String(3 * MiB));
  await assert.rejects(helper.growVolume(1), failsWith("insufficient_storage", /the disk has no room/));
  const isRunning = (): boolean => processIds().some((pid) => commandLineOf(pid).includes(volume.dir));
  assert.ok(isRunning());
  helper.close();
  await until("it has ended", () => !isRunning());
});

test("such a helper that cannot be started is one that has gone", async () => {
  const [ours, theirs] = await socketPair();
  relay(theirs, ["/none"]);
  await assert.rejects(new PrivilegedHelper(ours).setQuota(256, MiB), failsWith("unavailable", /lost the helper/));
});
