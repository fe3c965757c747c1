/** What operators are told about their host: each lack with a reason that is its own. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { describe } from "../../../../../worker/runtime/host/checks.ts";
import type { Host } from "../../../../../worker/runtime/host/host.ts";

const host: Omit<Host, "checks"> = {
  runtime: "crun",
  podmanRunDir: "/run/podman",
  crunDir: "/run/podman/crun",
  strongDir: "/run/podman/runsc",
  initBinary: "/usr/bin/catatonit",
  reaperBinary: "/usr/bin/tini-static",
  execServer: "/usr/lib/exec-server",
  network: "pasta:-t,none",
  networkFilter: "nft",
  seccompProfiles: { whole: "/seccomp.json", empty: "/seccomp-empty.json" },
  takesReadyFilters: true,
  ipc: "bounded",
  controlGroups: "v2",
  pageBytes: 4096,
  limits: { memory: true, cpu: true, pids: true, storage: true },
  groups: undefined,
  scopes: undefined,
  hasStrong: true,
  nofileMax: 1024,
  nprocShared: 2000,
};
const found = {
  podman: "5.4.2",
  runtimeVersion: "1.21",
  driver: "overlay",
  strong: { works: true, found: "gVisor" },
  mustBeStrong: false,
  areGroupsOff: false,
} as const;
/** The notes of what is lacking, by name. */
const lacking = (changed: Partial<Host>, more: Partial<Parameters<typeof describe>[1]> = {}): Record<string, string | undefined> =>
  Object.fromEntries(
    describe({ ...host, ...changed }, { ...found, ...more })
      .filter(({ ok }) => !ok)
      .map(({ name, note }) => [name, note]),
  );

test("a host that has everything lacks nothing", () => {
  assert.deepEqual(lacking({}), {});
});

test("without a volume, no limit on storage is not for lack of control groups", () => {
  assert.deepEqual(lacking({ limits: { ...host.limits, storage: false } }), { storage_limit: "needs the volume and its helper" });
});

test("without control groups, only limits that need them are missing, with what the operator can do about it", () => {
  const limits = { memory: false, cpu: false, pids: false, storage: true };
  const withNote = (note: string) => ({ memory_limit: note, cpu_limit: note, pids_limit: note });
  assert.deepEqual(lacking({ limits }), withNote("no control groups: start as root, or allow sudo without a password"));
  assert.deepEqual(lacking({ limits }, { areGroupsOff: true }), withNote("no control groups: turned off by SANDGATE_CONTROL_GROUPS"));
});
