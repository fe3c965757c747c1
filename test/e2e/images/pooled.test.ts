/** Containers of the pool, of which one has no files, as sandboxes of any image. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { test } from "node:test";
import { attempt } from "../../../shared/util/attempt.ts";
import { parseMounts } from "../../../shared/util/mounts.ts";
import { type Answer, Api } from "../../helpers/api.ts";
import { expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { OwnStore } from "../../helpers/own-store.ts";
import { type MadeImage, TestRegistry } from "../../helpers/registry.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const store = await fixture(OwnStore.make());
const registry = await fixture(TestRegistry.start());
const size = 2;
const settings = {
  ...store.settings,
  SANDGATE_POOL_SIZE: String(size),
  SANDGATE_POOL_SIZE_MAX: String(size),
  SANDGATE_SNAPSHOT_ARCHIVE: "false",
  SANDGATE_PRIVATE_REGISTRIES: registry.host,
};
const stack = await fixture(startStack({ name: "pooled-images", settings, environment: { SSL_CERT_FILE: registry.certificate } }));
const api = new Api(stack);

const make = async ({ name }: MadeImage): Promise<string> =>
  expectOk(await api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: `${registry.host}/${name}` }), 201).id;

/** What waits to become a sandbox, once the pool is full and stays as it is. */
async function waiting(): Promise<string[]> {
  let [last, sinceMs] = ["", 0];
  return until("the pool is full", async () => {
    const { data } = (await api.call<{ data: { id: string }[] }>("GET", "/v1/sandboxes/list")).body;
    const left = (await stack.containers()).filter(({ sandboxId }) => !data.some(({ id }) => id === sandboxId));
    const now = JSON.stringify(left.map(({ sandboxId, pid }) => [sandboxId, attempt(() => statSync(`/proc/${pid}/root/`).dev)]));
    if (now !== last) [last, sinceMs] = [now, Date.now()];
    return left.length === size && Date.now() - sinceMs > 700 ? left.map(({ sandboxId }) => sandboxId) : undefined;
  });
}

/** How many containers wait with a file that only an image has. */
async function waitingWith(file: string): Promise<number> {
  const those = await waiting();
  const containers = (await stack.containers()).filter(({ sandboxId }) => those.includes(sandboxId));
  return containers.filter(({ pid }) => existsSync(`/proc/${pid}/root/${file}`)).length;
}

test("what waits becomes a sandbox of an image that nobody has asked for before", async () => {
  const image = await registry.add("team/first");
  const prepared = await waiting();
  const id = await make(image);
  assert.ok(prepared.includes(id), "a container that waited");
  await api.delete(id);
});

test("what waits has the files of an image that is asked for, and yet the operator can remove the image", async () => {
  const image = await registry.add("team/pooled", { bytes: 2 ** 20, links: { mark: "/" } });
  for (let made = 0; made < size; made++) {
    await waiting();
    await api.delete(await make(image));
  }
  await until("one waits with its files", async () => (await waitingWith("mark")) === size - 1);
  const prepared = await waiting();
  const id = await make(image);
  assert.ok(prepared.includes(id), "a container that waited");
  await api.delete(id);
  await until("one waits with its files", async () => (await waitingWith("mark")) === size - 1);
  await until("the operator can remove the image", async () => (await api.call("DELETE", `/v1/admin/images/${image.id}`)).status === 200);
});

/** What is mounted in a sandbox, as the host sees it. */
async function mountsOf(id: string): Promise<string[]> {
  const { pid } = await stack.containerOf(id);
  const found = parseMounts(readFileSync(`/proc/${pid}/mountinfo`, "utf8"));
  return found.map(({ point, type, options }) => `${point} ${type} ${options.join()}`).sort();
}

/** Links in the places where the OCI runtime mounts something. */
const links: readonly Readonly<Record<string, string>>[] = [
  { proc: "/root" },
  { proc: "/proc/self/root" },
  { sys: "../../../../tmp" },
  { dev: "/etc" },
  { run: "/proc/1/root" },
  { "etc/resolv.conf": "../run/resolvconf/resolv.conf" },
];

for (const [index, each] of links.entries()) {
  test(`an image with the link ${JSON.stringify(each)}: what is mounted is where it is without a pool`, async () => {
    const { name } = await registry.add(`team/links-${index}`, { links: each });
    const image = `${registry.host}/${name}`;
    const prepared = await waiting();
    const create = (resources: object): Promise<Answer<{ id: string }>> => api.call("POST", "/v1/sandboxes/create", { image, resources });
    const answers = [await create({}), await create({ memory: 400 + index })];
    assert.equal(answers[0]?.status, answers[1]?.status, JSON.stringify(answers.map(({ body }) => body)));
    if (answers[0]?.status !== 201) return;
    const ids = answers.map(({ body }) => body.id);
    assert.deepEqual(
      ids.map((id) => prepared.includes(id)),
      [true, false],
    );
    const mounts = await Promise.all(ids.map(mountsOf));
    assert.deepEqual(mounts[0], mounts[1]);
    await Promise.all(ids.map((id) => api.delete(id)));
  });
}

/** By these, the OCI runtime would get at what it has open, or fails. */
const intoProc: Readonly<Record<string, string>> = {
  hosts: "../../../../../proc/1/root/etc/hosts",
  hostname: "/proc/self/fd/3",
  "resolv.conf": "/proc/1/cwd/x",
};

for (const [file, link] of Object.entries(intoProc)) {
  test(`an image with /etc/${file} linked to ${link}: no process is there yet to which it could lead`, async () => {
    const [plain, odd] = [await registry.add(`team/plain-${file}`), await registry.add(`team/proc-${file}`, { links: { [`etc/${file}`]: link } })];
    const made: string[] = [];
    for (const image of [plain, odd]) {
      const prepared = await waiting();
      made.push(await make(image));
      assert.ok(prepared.includes(made.at(-1) ?? ""), "a container that waited");
    }
    const [usual = [], found = []] = await Promise.all(made.map(mountsOf));
    const [lost, extra] = [usual.filter((line) => !found.includes(line)), found.filter((line) => !usual.includes(line))];
    assert.deepEqual(
      lost.map((line) => line.split(" ")[0]),
      [`/etc/${file}`],
    );
    // In the image's own folder, which the mount of /proc hides.
    assert.deepEqual(
      extra.map((line) => line.split(" ")[0]),
      [`/${link.replace(/^[./]*/, "")}`],
    );
    await Promise.all(made.map((id) => api.delete(id)));
  });
}

test("an image with a user of its own gets a container that is made for it, and takes none in vain a second time", async () => {
  const image = await registry.add("team/user", { config: { User: "1000:1000" } });
  await waiting();
  const id = await make(image);
  const prepared = await waiting();
  const again = await make(image);
  assert.ok(!prepared.includes(again));
  await api.delete(again);
  const container = await stack.containerOf(id);
  assert.equal((await stack.containerPodman(["inspect", "--format", "{{.Config.User}}", container.id])).trim(), "1000:1000");
  await api.delete(id);
  await until("nothing is left of it", async () => !(await stack.containers()).some(({ sandboxId }) => sandboxId === id));
});
