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

/** What may start programs; of the command line only what sets the person's terminal, by `stty`. */
const starters = ["worker/runtime/", "systemd/", "bench/", "shared/client/build.mjs", "shared/cli/keyboard.ts"];
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

test("shared/ imports nobody, and its utilities and states nothing of it but errors and each other", () => {
  assert.deepEqual(
    breaking((file, imported) => file.startsWith("shared/") && isSource(imported) && !imported.startsWith("shared/")),
    [],
  );
  const low = ["shared/util/", "shared/state/"];
  assert.deepEqual(
    breaking((file, imported) => isIn(file, low) && isSource(imported) && !isIn(imported, [...low, "shared/errors.ts"])),
    [],
  );
});

test("only the worker's runtime, the start-up, the load tests, the build and the command line's keyboard start programs", () => {
  assert.deepEqual(
    breaking((file, imported) => programs.includes(imported) && !isIn(file, starters)),
    [],
  );
});

test("no imports go in circles, types included", () => {
  assert.deepEqual(
    circlesIn(imports).map((circle) => circle.join(" -> ")),
    [],
  );
});

test("nor do those between the gateway's folders", () => {
  const folderOf = (file: string): string | undefined => /^gateway\/([^/]+)/.exec(file)?.[1];
  assert.deepEqual(
    circlesIn(between(imports, folderOf)).map((circle) => circle.join(" -> ")),
    [],
  );
});
