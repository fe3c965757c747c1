/** What Podman is told about the container of a sandbox. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Isolation } from "../../../../../shared/schemas/sandboxes.ts";
import type { ControlGroups } from "../../../../../worker/runtime/container/control-groups.ts";
import { OwnFiles } from "../../../../../worker/runtime/container/own-files.ts";
import type { Scopes } from "../../../../../worker/runtime/container/scopes.ts";
import { MeetingPlaces } from "../../../../../worker/runtime/exec-server/meeting-places.ts";
import type { Host } from "../../../../../worker/runtime/host/host.ts";
import { containerSpec, identityOf } from "../../../../../worker/runtime/podman/spec.ts";
import type { SpecGenerator } from "../../../../../worker/runtime/podman/spec-generator.ts";

const host: Host = {
  runtime: "crun",
  podmanRunDir: "/run/user/1000/sg",
  crunDir: "/run/user/1000/sg/crun",
  strongDir: "/run/user/1000/sg/runsc",
  initBinary: "/usr/bin/catatonit",
  reaperBinary: undefined,
  execServer: undefined,
  network: "slirp4netns:enable_ipv6=false,allow_host_loopback=false",
  networkFilter: "nft",
  seccompProfiles: { whole: "/data/seccomp.json", empty: "/data/seccomp-empty.json" },
  takesReadyFilters: true,
  ipc: "bounded",
  controlGroups: "v2",
  pageBytes: 4_096,
  limits: { memory: true, cpu: true, pids: true, storage: false },
  groups: undefined,
  scopes: undefined,
  hasStrong: true,
  nofileMax: 4_096,
  nprocShared: 2_000,
  checks: [],
};
const config = { sandboxNofile: 20_000, sandboxPidsMax: 256 };
const base = { id: "a".repeat(64), env: ["PATH=/bin", "EMPTY=", "BARE", "=odd", "TWO=a=b"], working_dir: "/app", user: "1000:1000" };

function specOn(changes: Partial<Host>, network: "none" | "outbound" = "outbound", isolation: Isolation = "standard") {
  const on = {
    host: { ...host, ...changes },
    config,
    workerId: "wk_1",
    meetings: new MeetingPlaces("/run/user/1000/sg/wk_1/meeting"),
    own: new OwnFiles("/run/user/1000/sg/wk_1/own"),
    filter: { specification: { seccomp_profile_path: "/data/seccomp-empty.json", annotations: { "run.oci.seccomp_bpf_data": "AAAA" } } },
  };
  return containerSpec(on, { sandboxId: "sb_12345678", cpus: 1.5, memoryMiB: 64, network, isolation }, { dir: "/roots/merged", base, range: undefined });
}

test("a container gets the image's variables that have a value, and none of the worker's", () => {
  const { env, httpproxy, user, work_dir } = specOn({});
  assert.deepEqual(env, { PATH: "/bin", EMPTY: "", TWO: "a=b" });
  assert.deepEqual([httpproxy, user, work_dir], [false, "1000:1000", "/"]);
});

test("Podman limits what it has control groups for", () => {
  const { resource_limits, cgroups_mode } = specOn({});
  assert.deepEqual(resource_limits, { memory: { limit: 64 * 2 ** 20, swap: 64 * 2 ** 20 }, cpu: { period: 100_000, quota: 150_000 }, pids: { limit: 256 } });
  assert.equal(cgroups_mode, undefined);
});

test("a strong sandbox with ids of its own gets copies of Podman's files beside its root, another one does not", () => {
  const on = {
    host,
    config,
    workerId: "wk_1",
    meetings: new MeetingPlaces("/run/user/1000/sg/wk_1/meeting"),
    own: new OwnFiles("/run/user/1000/sg/wk_1/own"),
    filter: { specification: { seccomp_profile_path: "/data/seccomp-empty.json", annotations: { "run.oci.seccomp_bpf_data": "AAAA" } } },
  };
  const asked = { sandboxId: "sb_12345678", cpus: 1, memoryMiB: 64, network: "none" } as const;
  const copiesOf = (isolation: Isolation, range: number | undefined): string | undefined =>
    containerSpec(on, { ...asked, isolation }, { dir: "/mnt/wk_1/sb_12345678/root", base, range }).annotations?.["sandgate.copies"];
  assert.equal(copiesOf("strong", 3), "/mnt/wk_1/sb_12345678/copies");
  assert.deepEqual([copiesOf("strong", undefined), copiesOf("standard", 3)], [undefined, undefined]);
});

test("crun is given the filter that it has made before, gVisor has its own", () => {
  const filterOf = (isolation: Isolation): unknown[] => {
    const { annotations, seccomp_profile_path } = specOn({}, "none", isolation);
    return [annotations?.["run.oci.seccomp_bpf_data"], seccomp_profile_path];
  };
  assert.deepEqual(
    [filterOf("standard"), filterOf("strong")],
    [
      ["AAAA", "/data/seccomp-empty.json"],
      [undefined, "/data/seccomp.json"],
    ],
  );
});

test("with groups of the worker's own, Podman makes and limits none", () => {
  const { resource_limits, cgroups_mode } = specOn({ groups: {} as ControlGroups });
  assert.deepEqual([resource_limits, cgroups_mode], [undefined, "disabled"]);
});

test("with groups from the service manager, Podman makes none for strong sandboxes, and hides those of the host", () => {
  const isMade = (isolation: Isolation): boolean => specOn({ scopes: {} as Scopes }, "none", isolation).cgroups_mode !== "disabled";
  assert.deepEqual([isMade("standard"), isMade("strong")], [true, false]);
  const { resource_limits, mounts } = specOn({ scopes: {} as Scopes }, "none", "strong");
  assert.equal(resource_limits, undefined);
  assert.ok(mounts?.some(({ destination }) => destination === "/sys/fs/cgroup"));
});

test("without a limit for each sandbox's processes, all share one, and files never exceed what the host allows", () => {
  const limitsOn = (changes: Partial<Host>) => Object.fromEntries((specOn(changes).r_limits ?? []).map(({ type, soft, hard }) => [type, [soft, hard]]));
  const always = { core: [0, 0], nice: [0, 0], rtprio: [0, 0], nofile: [4_096, 4_096] };
  assert.deepEqual(limitsOn({}), always);
  assert.deepEqual(limitsOn({ limits: { ...host.limits, pids: false } }), { ...always, nproc: [2_000, 2_000] });
});

test("the network and its options are those of the host where Podman makes it, or none", () => {
  const { netns, network_options } = specOn({}, "outbound", "strong");
  assert.deepEqual([netns, network_options], [{ nsmode: "slirp4netns" }, { slirp4netns: ["enable_ipv6=false", "allow_host_loopback=false"] }]);
  assert.deepEqual(specOn({ network: "pasta:--ipv4-only,--no-map-gw" }).network_options, { pasta: ["--ipv4-only", "--no-map-gw"] });
  assert.deepEqual([specOn({}, "none").netns, specOn({}, "none").network_options], [{ nsmode: "none" }, undefined]);
});

test("a sandbox has files of its own for its names, and for its resolver where its network is attached from outside", () => {
  const own = (found: SpecGenerator): [destination: string, source: string][] =>
    (found.mounts ?? []).flatMap(({ destination, source }) => (source.includes("/own/") ? [[destination, source] as [string, string]] : []));
  const folder = "/run/user/1000/sg/wk_1/own/sb_12345678";
  const always = [
    ["/etc/hosts", `${folder}/hosts`],
    ["/etc/hostname", `${folder}/hostname`],
    ["/run/.containerenv", `${folder}/containerenv`],
  ];
  assert.deepEqual(own(specOn({})), [...always, ["/etc/resolv.conf", `${folder}/resolver`]]);
  assert.deepEqual(specOn({}).netns, { nsmode: "none" });
  assert.deepEqual(own(specOn({}, "none")), always);
  // Only Podman knows the address of these, and gVisor's runtime gets copies of Podman's files.
  assert.deepEqual([own(specOn({ network: "pasta" })), own(specOn({}, "outbound", "strong"))], [[], []]);
  const [asked, names] = [{ sandboxId: "sb_12345678", isolation: "standard" } as const, ["sandbox-12345678", "sandgate-sb_12345678"]];
  assert.deepEqual(identityOf(host, { ...asked, network: "outbound" }), { names, address: "10.0.2.100" });
  assert.deepEqual(identityOf(host, { ...asked, network: "none" }), { names, address: undefined });
});

test("the control groups of others are hidden where they can be seen", () => {
  const hides = (changes: Partial<Host>): boolean => (specOn(changes).mounts ?? []).some(({ destination }) => destination === "/sys/fs/cgroup");
  assert.deepEqual([hides({ controlGroups: "v1" }), hides({ controlGroups: "v2" })], [true, false]);
});
