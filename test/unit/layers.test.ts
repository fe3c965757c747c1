/** The layers hold: who may import whom. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { importsBelow } from "../helpers/imports.ts";

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
