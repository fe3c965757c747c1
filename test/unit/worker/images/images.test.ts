/** What a worker decides about images on its own: addresses, failures of pulls, which images to remove, which may be run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseImage } from "../../../../shared/util/image.ts";
import { isPulled, surplus } from "../../../../worker/images/budget.ts";
import { Pins } from "../../../../worker/images/pins.ts";
import { refuseUnusable } from "../../../../worker/images/usable.ts";
import { addressesOf, isPublic } from "../../../../worker/runtime/network/addresses.ts";
import { checkedId } from "../../../../worker/runtime/podman/podman.ts";
import { pullFailure } from "../../../../worker/runtime/podman/pull.ts";

test("internet addresses are public", () => {
  for (const address of ["1.1.1.1", "8.8.8.8", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "2606:4700::1111", "2a00::1"]) {
    assert.ok(isPublic(address), address);
  }
});

test("all other addresses are not public, in every spelling", () => {
  const ipv4 = ["0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.255", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.1.1"];
  const special = ["192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "255.255.255.255"];
  const ipv6 = ["::", "::1", "fe80::1", "fd00::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:8.8.8.8", "::127.0.0.1"];
  const through = ["64:ff9b::7f00:1", "2002:7f00:1::", "2001::1", "2001:db8::1", "100::1"];
  for (const address of [...ipv4, ...special, ...ipv6, ...through, "", "localhost", "1.2.3", "1.2.3.4.5"]) assert.ok(!isPublic(address), address);
});

test("names are resolved as by every program of this host", async () => {
  assert.deepEqual(await addressesOf("192.0.2.1"), ["192.0.2.1"]);
  for (const name of ["localhost", "127.1", "0x7f.1", "2130706433"]) {
    const addresses = await addressesOf(name);
    assert.ok(addresses.length > 0 && addresses.every((address) => ["127.0.0.1", "::1"].includes(address)), `${name}: ${addresses}`);
  }
  assert.deepEqual(await addressesOf("no-such-name.invalid"), []);
});

const wanted = parseImage("registry.example/team/denied-404-timeout:1");
const failures: readonly (readonly [stderr: string, said: RegExp])[] = [
  ["Error: reading manifest 1 in registry.example/team/denied-404-timeout: manifest unknown", /^image not found/],
  ["Error: reading manifest 1 in x: errors:\ndenied: requested access to the resource is denied\nunauthorized: authentication required", /^image not found/],
  ["Error: reading manifest 1 in x: name unknown: repository not known", /^image not found/],
  ["Error: initializing source docker://x: reading manifest: StatusCode: 404", /^image not found/],
  ['pinging container registry x: Get "https://x/v2/": dial tcp 192.0.2.1:443: connect: connection refused', /cannot be reached/],
  ['pinging container registry x: Get "https://x/v2/": dial tcp: lookup x: no such host', /cannot be reached/],
  ["pinging container registry x: tls: failed to verify certificate: x509: certificate signed by unknown authority", /cannot be reached/],
  ["reading blob: dial tcp 10.0.0.1:80: connect: connection refused", /cannot be reached/],
  ["received unexpected HTTP status: 503 Service Unavailable", /cannot be reached/],
  ["toomanyrequests: You have reached your pull rate limit", /cannot be reached/],
  ["Error: choosing an image from manifest list docker://x: no image for architecture", /is no image for this machine$/],
  ["Error: something about registry.example/team/denied-404-timeout:1", /is no image for this machine$/],
];

test("podman's errors are translated, and the name of the image does not matter", () => {
  for (const [stderr, said] of failures) {
    const error = pullFailure({ stderr, timedOut: false }, wanted);
    assert.equal(error.code, "unprocessable", stderr);
    assert.match(error.message, said, stderr);
    assert.ok(error.message.includes("registry.example"));
  }
  assert.match(pullFailure({ stderr: "", timedOut: true }, wanted).message, /took too long/);
  assert.equal(pullFailure({ stderr: "write /x: no space left on device", timedOut: false }, wanted).code, "insufficient_storage");
});

const stored = (id: string, sizeBytes: number) => ({ id, sizeBytes });

test("the least recently used images are removed, and no more than necessary", () => {
  const images = [stored("new", 10), stored("old", 10), stored("older", 10), stored("never", 10)];
  const ages: Record<string, number> = { new: 30, old: 20, older: 10 };
  const going = (bytesMax: number, stay: readonly string[] = []) =>
    surplus(images, bytesMax, { mayGo: ({ id }) => !stay.includes(id), usedAtMs: ({ id }) => ages[id] ?? 0 }).map(({ id }) => id);
  assert.deepEqual(going(40), []);
  assert.deepEqual(going(39), ["never"]);
  assert.deepEqual(going(20), ["never", "older"]);
  assert.deepEqual(going(20, ["older"]), ["never", "old"]);
  assert.deepEqual(going(0, ["new"]), ["never", "older", "old"]);
});

test("only images from a registry are removed automatically", () => {
  const digests = ["docker.io/library/alpine@sha256:0"];
  assert.ok(isPulled({ names: ["docker.io/library/alpine:3"], digests, formerNames: [] }));
  assert.ok(isPulled({ names: [], digests, formerNames: [] }));
  assert.ok(isPulled({ names: [], digests: [], formerNames: ["docker.io/library/alpine:3"] }));
  assert.ok(!isPulled({ names: [], digests: [], formerNames: [] }), "made here, with no name");
  assert.ok(!isPulled({ names: ["docker.io/library/alpine:3", "localhost/mine:1"], digests, formerNames: [] }));
  assert.ok(!isPulled({ names: [], digests: [], formerNames: ["localhost/sandgate/default:latest"] }));
});

test("a name or id is held until all holders have released it", () => {
  const pins = new Pins();
  const [one, two] = [pins.add("a"), pins.add("a")];
  one();
  assert.ok(pins.has("a"));
  two();
  assert.ok(!pins.has("a"));
});

test("only image ids reach podman", () => {
  assert.equal(checkedId("0123456789abcdef".repeat(4)), "0123456789abcdef".repeat(4));
  for (const text of ["", "alpine", "oci:/etc", "--privileged", `sha256:${"0".repeat(64)}`, "0".repeat(63)]) assert.throws(() => checkedId(text), /no id/);
});

test("images whose configuration would do more than say what to run are refused", () => {
  const image = (env: string[], annotations: string[] = []) => ({ base: { id: "", env, working_dir: "/", user: "" }, annotations });
  refuseUnusable(wanted, image(["PATH=/bin", "EMPTY=", "A=b=c"], ["org.opencontainers.image.title", "org.opencontainers.image.base.name"]));
  for (const pair of ["PATH", "SANDGATE_*", "=x", ""]) assert.throws(() => refuseUnusable(wanted, image([pair])), /variable without a value/);
  for (const key of ["run.oci.seccomp_bpf_data", "org.systemd.property.MemoryMax", "io.podman.annotations.privileged", "org.opencontainers.imagex", ""]) {
    assert.throws(() => refuseUnusable(wanted, image([], [key])), /has the annotation/);
  }
});

test("an image whose configuration is larger than a snapshot's directory entry should hold is refused", () => {
  const base = { id: "", env: ["PATH=/bin"], working_dir: "/", user: "" };
  const large = "x".repeat(256 * 1024);
  for (const change of [{ env: [`A=${large}`] }, { working_dir: `/${large}` }, { user: large }]) {
    assert.throws(() => refuseUnusable(wanted, { base: { ...base, ...change }, annotations: [] }), /too long/);
  }
});
