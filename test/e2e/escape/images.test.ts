/** Attacks by way of the image's name: on the files of the host, on the default image of everybody, and on the networks of the host. */
import assert from "node:assert/strict";
import { chownSync, writeFileSync } from "node:fs";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { askWithin } from "../../../shared/bus/calls.ts";
import { newId } from "../../../shared/util/ids.ts";
import { processIds } from "../../../shared/util/proc.ts";
import { commandLineOf, environmentOf } from "../../../worker/runtime/process/proc.ts";
import { Api } from "../../helpers/api.ts";
import { connectBus } from "../../helpers/bus.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { Listener } from "../../helpers/listener.ts";
import { OwnStore } from "../../helpers/own-store.ts";
import { TestProxy } from "../../helpers/proxy.ts";
import { TestRegistry } from "../../helpers/registry.ts";
import { plain } from "../../helpers/resilience.ts";
import { SnapshotCalls } from "../../helpers/snapshots.ts";
import { startStack } from "../../helpers/stack.ts";
import { until } from "../../helpers/until.ts";

/** On the internet as far as the installation knows: its proxy leads there. */
const stranger = "registry.stranger.example";
const defaultName = "localhost/sandgate/default:latest";
const archives: string[] = [];

const store = await fixture(OwnStore.make());
const registry = await fixture(TestRegistry.start([stranger]));
const proxy = await fixture(TestProxy.start());
const listener = await fixture(Listener.start());
proxy.lead(`${stranger}:443`, registry.port);
const stack = await fixture(
  startStack({
    name: "escape-images",
    settings: { ...plain, ...store.settings, SANDGATE_SNAPSHOT_ARCHIVE: "false", SANDGATE_PRIVATE_REGISTRIES: registry.host },
    environment: { SSL_CERT_FILE: registry.certificate, HTTPS_PROXY: proxy.url },
  }),
);
const api = new Api(stack);
const calls = new SnapshotCalls(api);
const own = await registry.add("tenant/own");
const source = await api.create();
const snapshot = await calls.take(source);
const { path: planted } = fixture(temporaryFolder("planted", 0o755));
// Podman writes the archives there.
chownSync(planted, stack.instance.account.uid, stack.instance.account.gid);
await plantArchives();

/** Files that every user of the host may read, in the formats that Podman takes. */
async function plantArchives(): Promise<void> {
  await stack.podman("tag", store.defaultId, "localhost/planted:latest");
  for (const format of ["docker-archive", "oci-archive"]) {
    const file = join(planted, `${format}.tar`);
    await stack.podman("save", "--quiet", "--format", format, "--output", file, "localhost/planted:latest");
    archives.push(file);
  }
  await stack.podman("untag", store.defaultId, "localhost/planted:latest");
  writeFileSync(join(planted, "any.tar"), Buffer.alloc(1024), { mode: 0o644 });
}
const images = async (): Promise<string[]> => [...new Set((await stack.podman("images", "--all", "--quiet", "--no-trunc")).split("\n"))].sort();
const create = (image: string) => api.call("POST", "/v1/sandboxes/create", { image });

/** Asks for an image in all ways there are; none may be answered with anything but a refusal. */
async function refusedEverywhere(image: string, message: RegExp): Promise<void> {
  expectError(await create(image), "unprocessable", message);
  expectError(await calls.restore(snapshot.id, { image }), "unprocessable", message);
  expectError(await calls.clone(source, { image }), "unprocessable", message);
}

const transports: readonly (readonly [name: string, reference: () => string])[] = [
  ["docker-archive:", () => `docker-archive:${archives[0]}`],
  ["oci-archive:", () => `oci-archive:${archives[1]}`],
  ["tarball:", () => `tarball:${planted}/any.tar`],
  ["dir:", () => `dir:${planted}`],
  ["oci:", () => "oci:/etc"],
  ["sif:", () => `sif:${planted}/any.tar`],
  ["containers-storage:", () => `containers-storage:${store.defaultId}@/`],
  ["docker-daemon:", () => "docker-daemon:/x:latest"],
  ["ostree:", () => `ostree:x@${planted}`],
  ["docker://", () => `docker://${registry.host}/${own.name}`],
  ["a path", () => `${planted}/any.tar`],
];
const had = await images();
for (const [name, reference] of transports) {
  test(`reads what is on the host through ${name}`, async () => {
    await refusedEverywhere(reference(), /^image must be the name of a container image/);
    assert.deepEqual(await images(), had);
  });
}

test("reads what is on the host through a message to the worker that no gateway has seen", async () => {
  await using bus = await connectBus(stack.natsUrl, "sandgate-test-attacker");
  const worker = stack.worker.spec.env.SANDGATE_WORKER_ID ?? "";
  const shape = { cpu: 1, memory: 512, storage: 5, network: "none" as const, env_vars: {}, wait: true };
  for (const [, reference] of transports) {
    const call = { request_id: newId("request"), account_id: "a", key_id: "k", image: reference(), ...shape };
    await assert.rejects(askWithin(bus, "create", worker, call, 30_000), /image must be the name of a container image/);
  }
  assert.deepEqual(await images(), had);
});

test("has its own image taken for the default one by giving it that name", async () => {
  const made = expectOk(await create(`${registry.host}/${own.name}`), 201) as { id: string };
  await api.delete(made.id);
  await stack.podman("tag", own.id, defaultName);
  try {
    for (const image of ["default", defaultName, "localhost/sandgate/default"]) {
      const { id } = expectOk(await create(image), 201) as { id: string };
      const container = await stack.containerOf(id);
      assert.equal((await stack.containerPodman(["inspect", "--format", '{{index .Config.Labels "sandgate.image"}}', container.id])).trim(), store.defaultId);
      await api.delete(id);
    }
  } finally {
    await stack.podman("tag", store.defaultId, defaultName);
  }
});

test("starts an image of the host that the operator does not offer", async () => {
  await stack.podman("tag", store.defaultId, "localhost/private/tools:1");
  await refusedEverywhere("localhost/private/tools:1", /^image not allowed: .* is not one of the local images/);
  await refusedEverywhere("LOCALHOST/private/tools:1", /^image not allowed/);
});

const addresses: readonly (readonly [what: string, host: () => string])[] = [
  ["the host's loopback", () => `127.0.0.1:${listener.port}`],
  ["the host's loopback by name", () => `localhost:${listener.port}`],
  ["the host's loopback by a number", () => `0x7f.1:${listener.port}`],
  ["the host's loopback by a short form", () => `127.1:${listener.port}`],
  ["the host's loopback over IPv6", () => `[::1]:${listener.port}`],
  ["the host's loopback as an IPv6 address", () => `[::ffff:7f00:1]:${listener.port}`],
  ["any address of the host", () => `0.0.0.0:${listener.port}`],
  ["the host's own address", () => `${hostAddress()}:${listener.port}`],
  ["the host by its name", () => `${hostname()}:${listener.port}`],
  ["the cloud's metadata", () => "169.254.169.254"],
  ["a private network", () => "10.1.2.3:5000"],
  ["the resolver of closed networks", () => "10.0.2.3:53"],
  ["a network of a carrier", () => "100.64.0.1"],
  ["a private network over IPv6", () => "[fd00::1]:5000"],
];
for (const [what, host] of addresses) {
  test(`reaches ${what} as a registry`, async () => {
    await refusedEverywhere(`${host()}/any:1`, /^image not allowed: the registry .* is not on the internet/);
    assert.equal(listener.connections, 0);
  });
}

const isPull = (pid: number): boolean => commandLineOf(pid).slice(0, 2).join(" ").endsWith("podman pull");

function hostAddress(): string {
  return (
    Object.values(networkInterfaces())
      .flat()
      .find((address) => address?.family === "IPv4" && !address.internal)?.address ?? "127.0.0.1"
  );
}

test("reaches the host's networks by a registry that sends Podman there", async () => {
  const { name } = await registry.add("tenant/redirecting");
  // Whatever the name of a registry, or where it sends to, turns out to be after it was checked.
  for (const origin of [`http://127.0.0.1:${listener.port}`, `http://${hostAddress()}:${listener.port}`, `http://10.0.2.2:${listener.port}`]) {
    registry.redirectBlobs(origin);
    const asked = registry.requests.length;
    expectError(await create(`${stranger}/${name}`), "unprocessable", /^image not pullable: the registry .* cannot be reached/);
    assert.ok(
      registry.requests.slice(asked).some((request) => request.includes("/blobs/")),
      "it was asked for what it sends elsewhere",
    );
    assert.equal(listener.connections, 0, origin);
  }
  registry.redirectBlobs(undefined);
  expectOk(await create(`${stranger}/${name}`), 201);
});

test("has the worker's own variables put into a sandbox by an image that names them", async () => {
  for (const [index, variable] of ["SANDGATE_NATS_URL", "SANDGATE_*", "XDG_RUNTIME_DIR", "=x", ""].entries()) {
    const { name } = await registry.add(`tenant/variables-${index}`, { config: { Env: ["PATH=/bin", variable] } });
    await refusedEverywhere(`${registry.host}/${name}`, /^image not allowed: .* it has a variable without a value$/);
  }
});

test("gives orders to the OCI runtime by the annotations of an image", async () => {
  for (const [index, key] of ["run.oci.seccomp_bpf_data", "run.oci.handler", "org.systemd.property.MemoryMax", "io.podman.annotations.privileged"].entries()) {
    const annotations = { "org.opencontainers.image.title": "harmless", [key]: "1" };
    const { name } = await registry.add(`tenant/orders-${index}`, { annotations });
    await refusedEverywhere(`${registry.host}/${name}`, /^image not allowed: .* it has the annotation/);
  }
  const { name } = await registry.add("tenant/described", { annotations: { "org.opencontainers.image.title": "harmless" } });
  const { id } = expectOk(await create(`${registry.host}/${name}`), 201) as { id: string };
  await api.delete(id);
});

test("finds secrets of the installation among the variables of Podman", async () => {
  const mark = `SANDGATE_WORKER_ID=${stack.worker.spec.env.SANDGATE_WORKER_ID}`;
  const { name } = await registry.add("tenant/slow");
  const release = registry.hold();
  const pulling = create(`${registry.host}/${name}`);
  try {
    const environment = await until("podman pulls", () =>
      processIds()
        .filter(isPull)
        .map(environmentOf)
        .find((pairs) => pairs.includes(mark)),
    );
    assert.deepEqual(
      environment.filter((pair) => pair.startsWith("SANDGATE_")),
      [mark],
    );
  } finally {
    release();
    await pulling;
  }
});
