/** The layers hold: who may import whom. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { between, circlesIn, importsBelow } from "../helpers/imports.ts";

const sources = ["gateway", "worker", "shared", "systemd", "bench"];
const imports = importsBelow(sources);

/** From top to bottom; each may import its own layer and those below it. */
const layers = [
  ["gateway/main.ts", "gateway/pages.ts"],
  ["gateway/api/"],
  ["gateway/handlers/"],
  ["gateway/context.ts"],
  ["gateway/accounts/", "gateway/dashboard/", "gateway/docs/", "gateway/fleet/", "gateway/limit/", "gateway/live/", "gateway/metrics/", "gateway/call.ts"],
  ["gateway/http/", "gateway/base.ts"],
  ["shared/"],
];
const isIn = (file: string, places: readonly string[]): boolean => places.some((place) => (place.endsWith("/") ? file.startsWith(place) : file === place));
const layerOf = (file: string): number => layers.findIndex((places) => isIn(file, places));

/** What may start programs. */
const starters = ["worker/runtime/", "systemd/", "bench/", "shared/client/build.mjs"];
const programs = ["node:child_process", "execa"];

/** All imports that break a rule, as lines. */
function breaking(isBroken: (file: string, imported: string) => boolean): string[] {
  return [...imports].flatMap(([file, needed]) => [...needed].filter((one) => isBroken(file, one)).map((one) => `${file} imports ${one}`));
}
const isSource = (file: string): boolean => sources.some((folder) => file.startsWith(`${folder}/`));

test("nothing in the gateway imports what is above it", () => {
  assert.deepEqual(
    breaking((file, imported) => file.startsWith("gateway/") && isSource(imported) && layerOf(imported) < layerOf(file)),
    [],
  );
});

test("every file of the gateway has a layer", () => {
  assert.deepEqual(
    [...imports.keys()].filter((file) => file.startsWith("gateway/") && layerOf(file) < 0),
    [],
  );
});

test("gateway and worker do not import each other", () => {
  const isOther = (file: string, imported: string): boolean => file.startsWith("gateway/") && imported.startsWith("worker/");
  assert.deepEqual(
    breaking((file, imported) => isOther(file, imported) || isOther(imported, file)),
    [],
  );
});

/** What still breaks a rule, each to be taken out with the change that mends it. */
const left = {
  above: ["shared/cli/sandgate.mjs imports systemd/install.mjs"],
  programs: ["shared/cli/keyboard.ts imports node:child_process", "gateway/http/receive-buffer.ts imports execa"],
  circles: [
    ["gateway/fleet/placement.ts", "gateway/fleet/dispatch.ts"],
    ["systemd/admin/commands/keys.ts", "systemd/admin/commands/accounts.ts"],
    ["worker/runtime/container/container.ts", "worker/runtime/host.ts"],
    ["worker/runtime/container/isolation.ts", "worker/runtime/host.ts"],
    ["worker/runtime/container/podman.ts", "worker/runtime/host.ts"],
    ["worker/runtime/network/network.ts", "worker/runtime/host.ts"],
    ["worker/runtime/process/interactive.ts", "worker/runtime/container/oci.ts"],
    ["worker/sessions/sessions.ts", "worker/context.ts"],
  ],
} as const;
const isLeft = (file: string, imported: string): boolean => left.circles.some(([one, other]) => file === one && imported === other);
const acyclic = new Map([...imports].map(([file, needed]) => [file, new Set([...needed].filter((imported) => !isLeft(file, imported)))]));
/** Without those that are known. */
const but = (known: readonly string[], lines: readonly string[]): string[] => lines.filter((line) => !known.includes(line));

test("shared/ imports nobody, and its utilities and states nothing of it but errors and each other", () => {
  assert.deepEqual(
    but(
      left.above,
      breaking((file, imported) => file.startsWith("shared/") && isSource(imported) && !imported.startsWith("shared/")),
    ),
    [],
  );
  const low = ["shared/util/", "shared/state/"];
  assert.deepEqual(
    breaking((file, imported) => isIn(file, low) && isSource(imported) && !isIn(imported, [...low, "shared/errors.ts"])),
    [],
  );
});

test("only the worker's runtime, the start-up, the load tests and the build start programs", () => {
  assert.deepEqual(
    but(
      left.programs,
      breaking((file, imported) => programs.includes(imported) && !isIn(file, starters)),
    ),
    [],
  );
});

test("no imports go in circles, types included", () => {
  assert.deepEqual(
    circlesIn(acyclic).map((circle) => circle.join(" -> ")),
    [],
  );
});

test("nor do those between the gateway's folders", () => {
  const folderOf = (file: string): string | undefined => /^gateway\/([^/]+)/.exec(file)?.[1];
  assert.deepEqual(
    circlesIn(between(acyclic, folderOf)).map((circle) => circle.join(" -> ")),
    [],
  );
});
