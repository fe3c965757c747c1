/** The life of images: pulled once, refused with distinct errors, evicted when there are too many, listed for operators. */
import assert from "node:assert/strict";
import { statfsSync } from "node:fs";
import { test } from "node:test";
import { PeerWatch } from "../../../shared/bus/presence.ts";
import { peers } from "../../../shared/bus/subjects.ts";
import type { ImageInfo } from "../../../shared/client/types.ts";
import type { ErrorReason } from "../../../shared/errors.ts";
import { keyOfName } from "../../../shared/util/image.ts";
import { createLogger } from "../../../shared/util/log.ts";
import { AdminCommand } from "../../helpers/admin-command.ts";
import { Api } from "../../helpers/api.ts";
import { connectBus } from "../../helpers/bus.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { OwnStore } from "../../helpers/own-store.ts";
import { type MadeImage, TestRegistry } from "../../helpers/registry.ts";
import { plain, withSettings } from "../../helpers/resilience.ts";
import { SnapshotCalls } from "../../helpers/snapshots.ts";
import { missingImage, startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const MiB = 2 ** 20;
/** Room for three images of 3 MiB. */
const budget = 10 * MiB;
const imageBytes = 3 * MiB;

let made = 0;

const store = await fixture(OwnStore.make());
const registry = await fixture(TestRegistry.start());
const closed = await TestRegistry.start();
await closed[Symbol.asyncDispose]();
const settings = {
  ...plain,
  ...store.settings,
  SANDGATE_SNAPSHOT_ARCHIVE: "false",
  SANDGATE_PRIVATE_REGISTRIES: `${registry.host},${closed.host},[::1]:1`,
  SANDGATE_LOCAL_IMAGES: `${missingImage}, localhost/tools:1`,
  SANDGATE_IMAGES_BYTES_MAX: String(budget),
};
const environment = { SSL_CERT_FILE: registry.certificate };
const stack = await fixture(startStack({ name: "images", settings, environment }));
const api = new Api(stack);
const calls = new SnapshotCalls(api);

const whole = ({ name }: MadeImage): string => `${registry.host}/${name}`;
const add = (bytes = imageBytes): Promise<MadeImage> => registry.add(`team/image-${made++}`, { bytes });
const create = (image: string) => api.call<{ id: string; image: string }>("POST", "/v1/sandboxes/create", { image });
const start = async (image: string): Promise<string> => expectOk(await create(image), 201).id;
const use = async (image: MadeImage): Promise<void> => api.delete(await start(whole(image)));
const list = async (): Promise<readonly ImageInfo[]> => expectOk(await api.call<{ data: ImageInfo[] }>("GET", "/v1/admin/images")).data;
const find = async ({ id }: MadeImage): Promise<ImageInfo | undefined> => (await list()).find((image) => image.id === id);
const remove = (id: string, query = "") => api.call("DELETE", `/v1/admin/images/${id}${query}`);
const imageOf = async (sandbox: string): Promise<string> => {
  const { id } = await stack.containerOf(sandbox);
  return (await stack.containerPodman(["inspect", "--format", '{{index .Config.Labels "sandgate.image"}}', id])).trim();
};
const manifestRequests = (from: number): string[] => registry.requests.slice(from).filter((request) => request.includes("/manifests/"));

test("gateways hear which images a worker has, as long as it has them", async () => {
  await using bus = await connectBus(stack.natsUrl, "listener");
  const heard = new PeerWatch(bus, peers.gateway("listener"), createLogger("test", "silent"));
  const image = await add();
  const key = keyOfName(whole(image));
  const isTold = (): boolean => [...heard.present()].some(({ worker }) => worker?.images?.includes(key));
  await until("the worker is heard", () => [...heard.present()].some(({ worker }) => worker));
  assert.ok(!isTold());
  await use(image);
  await until("its image is told", isTold);
  expectOk(await remove(image.id));
  await until("the image is not told any more", () => !isTold());
});

test("an image is fetched once, by tag or digest, and is the one that the registry has", async () => {
  const image = await add();
  const sandboxes = await Promise.all([start(whole(image)), start(whole(image))]);
  for (const sandbox of sandboxes) assert.equal(await imageOf(sandbox), image.id);
  const asked = registry.requests.length;
  const [path] = whole(image).split(/:(?=latest)/);
  sandboxes.push(await start(path ?? ""), await start(`${path}@${image.digest}`), await start(`${path}:latest@${image.digest}`));
  for (const sandbox of sandboxes) assert.equal(await imageOf(sandbox), image.id);
  assert.deepEqual(manifestRequests(asked), []);
  await Promise.all(sandboxes.map((id) => api.delete(id)));
  expectOk(await remove(image.id));
});

test("an image is fetched by its digest alone, and found by it again", async () => {
  const image = await registry.add("team/by-digest", { tag: "other" });
  const name = `${registry.host}/team/by-digest@${image.digest}`;
  await api.delete(await start(name));
  const asked = registry.requests.length;
  await api.delete(await start(name));
  assert.deepEqual(manifestRequests(asked), []);
  expectOk(await remove(image.id));
});

test("a typo, an image that is not there, a registry that is not, and one that may not be asked are told apart", async () => {
  const { port } = closed;
  const answers: readonly (readonly [image: string, reason: ErrorReason, message: RegExp])[] = [
    ["Alpine:3", "invalid_image", /^image must be the name of a container image.*its path must consist of lower-case/],
    [`${registry.host}/team/missing:1`, "image_not_found", /^image not found: the registry 127\.0\.0\.1:\d+ has no .*\/team\/missing:1 that anybody may pull$/],
    [`127.0.0.1:${port}/team/any`, "registry_unreachable", /^image not pullable: the registry 127\.0\.0\.1:\d+ cannot be reached or does not answer as one$/],
    [
      "registry.no-such-name.invalid/team/any",
      "registry_unreachable",
      /^image not pullable: nobody knows the address of the registry registry\.no-such-name\.invalid$/,
    ],
    ["127.0.0.1:9/team/any", "registry_not_allowed", /^image not allowed: the registry 127\.0\.0\.1:9 is not on the internet/],
    ["localhost/team/any", "image_not_allowed", /^image not allowed: localhost\/team\/any:latest is not one of the local images/],
    [missingImage, "image_not_found", /^image not found: localhost\/no-such-image:latest is not on this worker$/],
  ];
  for (const [image, reason, message] of answers) expectError(await create(image), "unprocessable", message, reason);
});

test("a local image that the operator offers is used, and never removed to make room", async () => {
  await stack.podman("tag", store.defaultId, "localhost/tools:1");
  const sandbox = await start("localhost/tools:1");
  assert.equal(await imageOf(sandbox), store.defaultId);
  await api.delete(sandbox);
  await stack.podman("rmi", "localhost/tools:1");
  expectError(await create("localhost/tools:1"), "unprocessable", /^image not found: localhost\/tools:1 is not on this worker$/);
});

test("when a new image does not fit, those go that were not used for longest, and come back when asked for", async () => {
  const [one, two, three, four] = [await add(), await add(), await add(), await add()];
  for (const image of [one, two, three, one]) await use(image);
  await use(four);
  const left = await list();
  const has = ({ id }: MadeImage): boolean => left.some((image) => image.id === id);
  assert.deepEqual([one, two, three, four].map(has), [true, false, true, true]);
  assert.ok(
    left.some((image) => image.id === store.defaultId && image.default),
    "the default image stays",
  );
  await use(two);
  assert.ok(await find(two));
  assert.equal(await find(three), undefined, "now this one was not used for longest");
  for (const { id } of [one, two, four]) expectOk(await remove(id));
});

test("an image with a sandbox, under the files of a restored one, or under a snapshot stays, and a new one is refused when nothing may go", async () => {
  const [running, restored, kept, another] = [await add(), await add(), await add(), await add()];
  const sandbox = await start(whole(running));
  const sources = [await start(whole(restored)), await start(whole(kept))];
  const [first, second] = [await calls.take(sources[0] ?? ""), await calls.take(sources[1] ?? "")];
  const copy = await calls.restored(first.id);
  for (const id of sources) await api.delete(id);
  expectOk(await calls.delete(first.id));
  const inUse = await Promise.all([running, restored, kept].map(async (image) => (await find(image))?.in_use));
  assert.deepEqual(inUse, [true, true, true]);
  expectError(await create(whole(another)), "insufficient_storage", "there is no room for another image: the present ones are in use");
  assert.equal(await find(another), undefined);
  for (const image of [running, restored, kept]) expectError(await remove(image.id), "conflict", "the image is in use");
  // Podman itself keeps them, whoever asks.
  for (const { id } of [restored, kept]) await assert.rejects(stack.podman("rmi", id), /in use|being used/);

  const again = await calls.restored(second.id);
  await api.delete(sandbox);
  await use(another);
  assert.deepEqual(await Promise.all([running, restored, kept].map(async (image) => Boolean(await find(image)))), [false, true, true]);
  for (const { id } of [copy, again]) await api.delete(id);
  expectOk(await calls.delete(second.id));
  for (const { id } of [restored, kept, another]) expectOk(await remove(id));
});

test("an image larger than the room for all is refused and leaves nothing", async () => {
  const [small, large] = [await add(), await add(budget + MiB)];
  await use(small);
  expectError(await create(whole(large)), "insufficient_storage", /^the image takes more than the 10 MiB that there are for images$/);
  assert.equal(await find(large), undefined);
  assert.ok(await find(small), "nothing had to go for it");
  expectOk(await remove(small.id));
});

test("the default image that is gone is told as that, and nothing else takes its place", async () => {
  const image = await add();
  await use(image);
  const name = "localhost/sandgate/default:latest";
  const archive = `/tmp/sandgate-default-${process.pid}.tar`;
  await stack.podman("save", "--quiet", "--output", archive, name);
  await stack.podman("rmi", "--force", store.defaultId);
  await stack.podman("tag", image.id, name);
  try {
    for (const asked of ["default", name]) expectError(await create(asked), "unavailable", /^the default image is not on this worker; the next start/);
  } finally {
    await stack.podman("untag", image.id, name);
    await stack.podman("load", "--quiet", "--input", archive);
    await stack.podman("unshare", "rm", archive).catch(() => undefined);
  }
  await api.delete(await start("default"));
  expectOk(await remove(image.id));
});

test("a default image of an earlier version goes with the next start, unless files lie over it", async () => {
  const name = "localhost/sandgate/default:latest";
  const copy = await calls.restored((await calls.take(await start("default"))).id);
  const former = await store.add(name);
  await stack.podman("tag", store.defaultId, name);
  await stack.worker.kill9();
  await stack.worker.start();
  await stack.ready();
  const ids = (await list()).map(({ id }) => id);
  assert.ok(!ids.includes(former) && ids.includes(store.defaultId));

  // Now the other way round: what was the default image is below the files of a sandbox.
  const later = await store.add(name);
  const settled = stack.worker.spec.env.SANDGATE_DEFAULT_IMAGE_ID;
  await stack.worker.kill9();
  Object.assign(stack.worker.spec.env, { SANDGATE_DEFAULT_IMAGE_ID: later });
  await stack.worker.start();
  await stack.ready();
  assert.equal((await list()).find(({ id }) => id === store.defaultId)?.in_use, true);
  await stack.worker.kill9();
  Object.assign(stack.worker.spec.env, { SANDGATE_DEFAULT_IMAGE_ID: settled });
  await stack.podman("tag", store.defaultId, name);
  await stack.worker.start();
  await stack.ready();
  await api.delete(copy.id);
  for (const call of ["/v1/sandboxes/delete-all", "/v1/snapshots/delete-all"]) expectOk(await api.call("DELETE", call));
});

test("operators see the images of each worker and remove them, by call and by command", async () => {
  const [one, two] = [await add(), await add()];
  await use(one);
  await use(two);
  const worker = stack.worker.spec.env.SANDGATE_WORKER_ID ?? "";
  const { last_used_at, ...view } = (await find(one)) as ImageInfo;
  assert.deepEqual(view, { worker_id: worker, id: one.id, names: [whole(one)], size_bytes: view.size_bytes, in_use: false, default: false });
  assert.ok(view.size_bytes >= imageBytes && Math.abs(Date.parse(last_used_at ?? "") - Date.now()) < 600_000);
  expectError(await remove(store.defaultId), "conflict", "this is the default image");
  expectError(await remove("0".repeat(64)), "not_found", `Image not found: ${"0".repeat(64)}`);
  for (const id of ["--all", "localhost", "*"]) expectError(await remove(encodeURIComponent(id)), "not_found");
  expectError(await remove(one.id, "?worker_id=nobody"), "not_found", "Worker not found: nobody");
  expectError(await api.call("GET", "/v1/admin/images?worker_id=nobody"), "not_found", "Worker not found: nobody");
  assert.deepEqual(expectOk(await remove(one.id, `?worker_id=${worker}`)), { id: one.id, message: "Image removed", workers: [worker] });
  expectError(await remove(one.id), "not_found");

  await using admin = new AdminCommand({ url: stack.url, apiKey: stack.apiKey });
  const table = await admin.run("images", "--worker", worker);
  assert.match(table.stdout, /^ID +NAMES +SIZE +LAST USED +IN USE +WORKER/);
  assert.match(table.stdout, new RegExp(`^${two.id.slice(0, 12)} +${whole(two)} +3\\.0 MiB +just now +no +${worker}$`, "m"));
  assert.match(table.stdout, new RegExp(`^${store.defaultId.slice(0, 12)} .* default +${worker}$`, "m"));
  const removed = await admin.run("images", "rm", two.id.slice(0, 12), "--yes");
  assert.deepEqual([removed.exitCode, removed.stdout, removed.stderr], [0, `${two.id} is removed.`, ""]);
  const { stderr, exitCode } = await admin.run("images", "rm", "localhost/sandgate/default:latest", "--yes");
  assert.equal(exitCode, 1);
  assert.match(stderr, /this is the default image/);
  for (const args of [
    ["images", "drop"],
    ["images", "rm"],
  ])
    assert.equal((await admin.run(...args)).exitCode, 2);
  assert.equal((JSON.parse((await admin.run("images", "--json")).stdout) as { data: unknown[] }).data.length, (await list()).length);
});

test("what a worker needs is kept from others with the same storage, also while it is away", async () => {
  const image = await add();
  const source = await start(whole(image));
  const snapshot = await calls.take(source);
  await api.delete(source);
  await stack.worker.kill9();
  await using other = await startStack({ name: "images-other", settings, environment });
  const admin = new Api(other);
  const seen = expectOk(await admin.call<{ data: ImageInfo[] }>("GET", "/v1/admin/images")).data.find(({ id }) => id === image.id);
  assert.equal(seen?.in_use, true);
  expectError(await admin.call("DELETE", `/v1/admin/images/${image.id}`), "conflict", "the image is in use");
  await stack.worker.start();
  await stack.ready();
  await api.delete((await calls.restored(snapshot.id)).id);
  expectOk(await calls.delete(snapshot.id));
  expectOk(await remove(image.id));
});

test("no image is pulled that would take the disk near its floor, and a pull that is cut off leaves nothing", async () => {
  const { bavail, bsize } = statfsSync("/tmp");
  const floor = Math.floor((bavail * bsize * 2) / 3);
  await stack.worker.kill9();
  await using worker = withSettings(stack.worker, { SANDGATE_DISK_FLOOR_BYTES: String(floor) });
  await worker.start();
  await api.delete(await until("the worker takes calls", () => start("default")));
  const image = await add();
  expectError(await create(whole(image)), "insufficient_storage", "the host has too little free disk space for another image");
  assert.equal(await find(image), undefined);
  await api.delete(await start("default"));
  await until(
    "nothing is left of it",
    async () => (await stack.podman("unshare", "find", store.settings.SANDGATE_STORAGE_DIR ?? "", "-name", "pull-*")) === "",
  );
});
