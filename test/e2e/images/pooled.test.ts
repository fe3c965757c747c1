/** Images in the pool of warm containers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { OwnStore } from "../../helpers/own-store.ts";
import { type MadeImage, TestRegistry } from "../../helpers/registry.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

const imageBytes = 3 * 2 ** 20;
const store = await fixture(OwnStore.make());
const registry = await fixture(TestRegistry.start());
const settings = {
  ...store.settings,
  SANDGATE_POOL_SIZE: "1",
  SANDGATE_SNAPSHOT_ARCHIVE: "false",
  SANDGATE_PRIVATE_REGISTRIES: registry.host,
  // Room for one image, not for two.
  SANDGATE_IMAGES_BYTES_MAX: String(1.5 * imageBytes),
};
const stack = await fixture(startStack({ name: "pooled-images", settings, environment: { SSL_CERT_FILE: registry.certificate } }));
const api = new Api(stack);

const make = async ({ name }: MadeImage): Promise<string> =>
  expectOk(await api.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: `${registry.host}/${name}` }), 201).id;

/** Has the pool keep an image, by what it is asked for. @returns the future sandboxes of that image, when they wait */
async function pooled(image: MadeImage): Promise<string[]> {
  const taken = [await make(image), await make(image)];
  for (const id of taken) await api.delete(id);
  return until("the pool has containers of the image", async () => {
    const format = '{{index .Labels "sandgate.image"}} {{index .Labels "sandgate.sandbox"}}';
    const lines = (await stack.podman("ps", "--format", format)).split("\n").map((line) => line.split(" "));
    const ids = lines.flatMap(([of, id = ""]) => (of === image.id ? [id] : []));
    return ids.length === 2 && !ids.some((id) => taken.includes(id)) ? ids : undefined;
  });
}

test("an image that is asked for again is in the pool, and can be removed all the same", async () => {
  const image = await registry.add("team/pooled", { bytes: imageBytes });
  const waiting = await pooled(image);
  const id = await make(image);
  assert.ok(waiting.includes(id));
  await api.delete(id);
  await until("the operator can remove it", async () => (await api.call("DELETE", `/v1/admin/images/${image.id}`)).status === 200);
});

test("an image that only the pool keeps gives way to another one", async () => {
  await pooled(await registry.add("team/first", { bytes: imageBytes }));
  await api.delete(await make(await registry.add("team/second", { bytes: imageBytes })));
});
