/** What another user of the machine can make of root when root starts the product, tests it or measures it: nothing. */
import assert from "node:assert/strict";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { beforeEach, test } from "node:test";
import { appDir } from "../../../shared/programs.mjs";
import { Terminal } from "../../../systemd/base/terminal.ts";
import { replaceFile } from "../../../systemd/base/write-file.ts";
import { createAdministrator } from "../../../systemd/setup/administrator.ts";
import { buildRootFilesystem, defaultRecipe } from "../../../systemd/setup/root-filesystem.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { nobody, npmStart, runScript, shellAs } from "../../helpers/local-users.ts";
import { testInstance } from "../../helpers/prepare.ts";
import { until } from "../../helpers/until.ts";

/** As /tmp is. */
let shared: string;
let turns = 0;

const folder = fixture(temporaryFolder("walls-local-user", 0o755));
const instance = await testInstance(join(folder.path, "data"), {});

beforeEach(() => {
  shared = join(folder.path, `shared-${turns++}`);
  mkdirSync(shared);
  chmodSync(shared, 0o1777);
});

function setUp(dataDir: string, variables: Record<string, string> = {}, app = appDir): ReturnType<typeof npmStart> {
  const settings = { SANDGATE_USER: instance.config.user, SANDGATE_DATA_DIR: dataDir, SANDGATE_STORAGE_DIR: instance.paths.storage };
  return npmStart(["--setup-only"], { ...settings, ...variables }, app);
}

/** Refuses, says which folder it is, and leaves what was there as it was. */
async function refuses(dataDir: string, named: string): Promise<void> {
  const { exitCode, output } = await setUp(dataDir);
  assert.equal(exitCode, 1, output);
  assert.ok(output.includes(named), output);
}

test("owns the folder in which the data directory lies", async () => {
  const theirs = join(folder.path, "theirs");
  mkdirSync(theirs);
  chownSync(theirs, nobody.uid, nobody.gid);
  await refuses(join(theirs, "data"), `${theirs} belongs to user ${nobody.uid}`);
  assert.deepEqual(readdirSync(theirs), []);
});

test("may write the folder in which the data directory lies", async () => {
  const everybodys = join(folder.path, "everybodys");
  mkdirSync(everybodys);
  chmodSync(everybodys, 0o777);
  await refuses(join(everybodys, "data"), `${everybodys} can be written by every user`);
  assert.deepEqual(readdirSync(everybodys), []);
});

test("has made the data directory before root does", async () => {
  const data = join(shared, "data");
  await shellAs(nobody, 'mkdir "$1" && mkdir -m 0777 "$1/supervisor"', data);
  await refuses(data, `${data} belongs to user ${nobody.uid}`);
  assert.equal(statSync(data).uid, nobody.uid);
});

test("has put a link where root makes the data directory", async () => {
  const data = join(shared, "data");
  const victim = join(folder.path, "roots");
  mkdirSync(victim, { mode: 0o700 });
  await shellAs(nobody, 'ln -s "$1" "$2"', victim, data);
  await refuses(data, data);
  assert.deepEqual(readdirSync(victim), []);
});

test("has put a link or a file where root writes one", async () => {
  const theirs = join(shared, "theirs");
  await shellAs(nobody, 'mkdir "$1"', theirs);
  await assert.rejects(replaceFile(join(theirs, "api-key"), "secret", { mode: 0o600 }), /belongs to user 65534/);
});

test("control: a data directory in a folder such as /tmp, and one behind a link of root's", async () => {
  mkdirSync(join(folder.path, "real"));
  symlinkSync(join(folder.path, "real"), join(folder.path, "link"));
  for (const data of [join(shared, "data"), join(folder.path, "link/data")]) {
    const own = await testInstance(data, {});
    const { exitCode, output } = await setUp(own.paths.data);
    assert.equal(exitCode, 0, output);
  }
});

test("has a program in the PATH that npm makes of the folders above", async () => {
  const marker = join(shared, "ran");
  const bin = join(shared, "node_modules/.bin");
  const script = `#!/bin/sh\nid -u >> ${marker}\nPATH=/usr/bin:/bin exec "$(basename "$0")" "$@"\n`;
  await shellAs(
    nobody,
    'mkdir -p "$1" && for name in dirname flock setpriv podman env sh getent; do echo "$2" > "$1/$name"; done; chmod a+x "$1"/*',
    bin,
    script,
  );
  const { exitCode, output } = await setUp(instance.paths.data, { PATH: `${bin}:${process.env.PATH}` });
  assert.equal(exitCode, 0, output);
  assert.ok(!existsSync(marker));
});

test("has packages in a folder above the checkout", async () => {
  const checkout = join(shared, "checkout");
  mkdirSync(checkout);
  for (const name of ["package.json", "package-lock.json", "tsconfig.json", "systemd", "shared"])
    cpSync(join(appDir, name), join(checkout, name), { recursive: true });
  symlinkSync(join(appDir, "node_modules"), join(checkout, "node_modules"));
  const theirs = join(shared, "node_modules");
  await shellAs(nobody, 'mkdir "$1"', theirs);
  const { exitCode, output } = await setUp(instance.paths.data, {}, checkout);
  assert.equal(exitCode, 1, output);
  assert.ok(output.includes(`${theirs} is above ${checkout}`), output);
});

test("may write the folder of package.json", async () => {
  const checkout = join(folder.path, "checkout");
  for (const name of ["systemd", "shared"]) cpSync(join(appDir, name), join(checkout, name), { recursive: true });
  writeFileSync(join(checkout, "package.json"), "{}");
  chmodSync(checkout, 0o777);
  const { exitCode, output } = await setUp(instance.paths.data, {}, checkout);
  assert.equal(exitCode, 1, output);
  assert.ok(output.includes(`${checkout} can be written by every user`), output);
});

test("has made the folder in which root's tests keep compiled programs", async () => {
  const cache = join(shared, "tsx-0");
  await shellAs(nobody, 'mkdir -m 0777 "$1"', cache);
  const { exitCode, output } = await runScript(join(appDir, "test/run.mjs"), ["unit/attacks"], { TMPDIR: shared });
  assert.equal(exitCode, 0, output);
  assert.deepEqual(readdirSync(cache), []);
  assert.deepEqual(readdirSync(shared), [basename(cache)], "what was made for the tests is gone");
});

test("guesses the folder in which root builds the image", async () => {
  const prefix = `sandgate-image-${basename(instance.runtimeDir)}`;
  const guessed = join("/var/tmp", prefix);
  const stop = new AbortController();
  const builds = (): string[] => readdirSync("/var/tmp").filter((name) => name.startsWith(`${prefix}-`));
  await shellAs(nobody, 'ln -s "$1" "$2"', folder.path, guessed);
  try {
    const builder = { administrator: createAdministrator(new Terminal(process.stderr), stop.signal), signal: stop.signal };
    const built = buildRootFilesystem(instance, defaultRecipe, join(instance.paths.temporary, "image.tar"), builder, { say: () => {} });
    const [build = ""] = await until("the build has begun", () => builds().length > 0 && builds());
    const { uid, mode } = await until("its folder is ready", () => [statSync(join("/var/tmp", build))].find((found) => (found.mode & 0o777) !== 0o700));
    assert.deepEqual({ uid, mode: mode & 0o7777 }, { uid: 0, mode: 0o711 });
    stop.abort();
    await assert.rejects(built);
    assert.deepEqual(builds(), []);
  } finally {
    stop.abort();
    await shellAs(nobody, 'rm -f "$1"', guessed);
  }
});
