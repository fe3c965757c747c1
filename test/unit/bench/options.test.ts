/** The command line of `npm run load`. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseOptions } from "../../../bench/load/options.ts";
import { atEnd } from "../../helpers/fixture.ts";

const access = ["--url", "http://127.0.0.1:1", "--key", "sg_secret"];

test("what is not given has a default", async () => {
  const wanted = await parseOptions(access);
  assert.ok(wanted.kind === "load");
  const { baseUrl, apiKey, mix, rate, durationMs, seed, isLimitWanted, inFlightMax, jsonFile } = wanted.options;
  assert.deepEqual(
    [baseUrl, apiKey, mix, rate, durationMs, seed, isLimitWanted, inFlightMax, jsonFile],
    [access[1], access[3], "agents", 10, 60_000, 1, false, 1_024, undefined],
  );
  const search = await parseOptions([...access, "--find-limit", "--p99", "250ms", "--rate", "0.5"]);
  assert.ok(search.kind === "load");
  assert.deepEqual([search.options.durationMs, search.options.p99MsMax, search.options.rate], [10_000, 250, 0.5]);
});

test("the key can be in a file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sandgate-keys-"));
  atEnd(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "key");
  writeFileSync(file, "sg_from_file\n");
  const wanted = await parseOptions(["--url", "http://127.0.0.1:1", "--key-file", file]);
  assert.ok(wanted.kind === "load" && wanted.options.apiKey === "sg_from_file");
  await assert.rejects(parseOptions([...access, "--key-file", file]), /--key and --key-file do not go together/);
  await assert.rejects(parseOptions(["--url", "http://127.0.0.1:1", "--key-file", join(folder, "none")]), /no API key: ENOENT/);
});

test("a comparison takes one result or several on each side", async () => {
  assert.deepEqual(await parseOptions(["compare", "a.json,b.json", "c.json"]), { kind: "compare", base: ["a.json", "b.json"], other: ["c.json"] });
  for (const files of [[], ["a.json"], ["a.json", "b.json", "c.json"], ["a.json", ","]])
    await assert.rejects(parseOptions(["compare", ...files]), /compare takes two results/);
});

test("wrong usage is told with what the option takes", async () => {
  const cases: readonly [readonly string[], RegExp][] = [
    [["--rate", "none"], /^UsageError: --rate takes a number of arrivals a second, such as 50 or 0\.5$/],
    [["--rate", "0"], /--rate takes a number/],
    [["--duration", "60"], /--duration takes a time span such as 500ms, 90s, 10m/],
    [["--duration", "0s"], /--duration takes a time span/],
    [["--in-flight", "0"], /--in-flight takes a whole number from 1/],
    [["--mix", "first-command", "--rate", "5"], /--rate does not go with first-command, whose arrivals come by number/],
    [["--mix", "first-command", "--find-limit"], /--find-limit does not go with first-command/],
    [["--p99", "1s"], /--p99 goes with --find-limit only/],
    [["--speed", "5"], /Unknown option '--speed'/],
    [["--url", "ftp://there"], /ftp:\/\/there is not the address of a gateway/],
    [["start"], /unknown argument: start/],
  ];
  for (const [args, message] of cases) await assert.rejects(parseOptions([...access, ...args]), message, args.join(" "));
});
