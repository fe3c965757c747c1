/** `sandgate cp`: real files and folders, both ways, to where docker's habits put them. */
import assert from "node:assert/strict";
import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { execa } from "execa";
import { Cli } from "../../helpers/cli.ts";
import { openClient } from "../../helpers/client.ts";
import { fixture } from "../../helpers/fixture.ts";

const { account, client } = await fixture(openClient());
const here = (...parts: string[]): string => join(cli.folder, ...parts);
const inside = (command: string): Promise<string> => cli.done("exec", "box", command);
const cli = fixture(new Cli(account.api));
await client.sandboxes.create({ name: "box" });
mkdirSync(here("tree/sub/deep"), { recursive: true });
mkdirSync(here("tree/empty"));
writeFileSync(here("tree/a.txt"), "a\n");
writeFileSync(here("tree/sub/it's odd"), "odd");
writeFileSync(
  here("tree/sub/deep/large"),
  Uint8Array.from({ length: 3_000_000 }, (_, index) => Math.imul(index, 2_654_435_761) >>> 24),
);
writeFileSync(here("tree/nothing"), "");
chmodSync(here("tree/a.txt"), 0o750);
utimesSync(here("tree/a.txt"), 1_700_000_000, 1_700_000_000);
symlinkSync("../a.txt", here("tree/sub/link"));

test("a folder goes in and comes back as it was", async () => {
  assert.deepEqual(await cli.json<object>("cp", "tree", "box:/work/tree"), { files: 8, bytes: 3_000_005, skipped: 0 });
  assert.equal(await inside("stat -c '%a %Y' /work/tree/a.txt; readlink /work/tree/sub/link; ls -A /tmp"), "750 1700000000\n../a.txt");
  const { stderr } = await cli.run("cp", "box:/work/tree", "back");
  assert.equal(stderr, "Copied 8 files and folders, 2.9 MiB");
  await execa("diff", ["-r", here("tree"), here("back")]);
  const { mode, mtimeMs } = lstatSync(here("back/a.txt"));
  assert.deepEqual([mode & 0o777, mtimeMs, readlinkSync(here("back/sub/link"))], [0o750, 1_700_000_000_000, "../a.txt"]);
});

test("a copy is one call of the allowance and leaves the history to the person", async () => {
  const { api } = account;
  const left = async (): Promise<number> => Number(/r=(\d+)/.exec((await api.call("GET", "/v1/sandboxes/list")).headers.get("ratelimit") ?? "")?.[1]);
  const { total } = await cli.json<{ total: number }>("logs", "box");
  const before = await left();
  await cli.done("cp", "tree", "box:/work/counted");
  await cli.done("cp", "tree/a.txt", "box:/work/counted");
  await cli.done("cp", "box:/work/counted", "counted");
  await cli.done("cp", "box:/work/counted/a.txt", "counted");
  assert.equal(before - (await left()), 5, "four copies and the look at what is left");
  assert.equal((await cli.json<{ total: number }>("logs", "box")).total, total);
});

test("what is there decides where the copy goes", async () => {
  await inside("mkdir -p /srv/there");
  await cli.done("cp", "tree", "box:/srv/there");
  await cli.done("cp", "tree/.", "box:/srv/content");
  await cli.done("cp", "tree/a.txt", "box:/srv/there");
  await cli.done("cp", "tree/a.txt", "box:/srv/new/b.txt");
  assert.equal(await inside("cd /srv; ls -d there/tree/sub content/sub there/a.txt new/b.txt"), "content/sub\nnew/b.txt\nthere/a.txt\nthere/tree/sub");
  mkdirSync(here("there"));
  await cli.done("cp", "box:/work/tree/sub/deep", "there");
  await cli.done("cp", "box:/work/tree/a.txt", "there");
  await cli.done("cp", "-q", "box:/work/tree/a.txt", "renamed.txt");
  assert.ok(existsSync(here("there/deep/large")) && existsSync(here("there/a.txt")));
  assert.equal(readFileSync(here("renamed.txt"), "utf8"), "a\n");
});

test("what cannot be copied is told, and leaves nothing behind", async () => {
  for (const [from, to, message] of [
    ["none", "box:/work/x", /there is no file or folder none/],
    ["box:/none", "x", /there is no file or folder \/none in the sandbox/],
    ["tree", "box:/work/tree/a.txt", /a folder cannot be copied over the file/],
    ["tree/a.txt", "box:/none/such/", /there is no folder \/none\/such\//],
    ["tree/a.txt", "nobody:/work", /there is no sandbox nobody/],
    ["tree", "box:/proc/x", /could not be unpacked/],
  ] as const) {
    const { exitCode, stdout, stderr } = await cli.run("cp", from, to);
    assert.deepEqual([exitCode, stdout], [1, ""], stderr);
    assert.match(stderr, message);
  }
  assert.equal(await inside("ls -A /tmp"), "");
});

test("links that lead out are left out here, and told", async () => {
  await inside(
    "mkdir -p /work/links/sub && cd /work/links && ln -s /etc/passwd absolute && ln -s ../../outside up && ln -s sub inner && echo x > sub/file && mkfifo pipe && ln sub/file hard",
  );
  const { exitCode, stderr } = await cli.run("cp", "box:/work/links", "links");
  assert.equal(exitCode, 1);
  for (const name of ["absolute", "up"]) {
    assert.match(stderr, new RegExp(`${name} is left out: it links to`));
    assert.ok(!existsSync(here("links", name)));
  }
  assert.match(stderr, /pipe is left out: it is a fifo/);
  assert.equal(readlinkSync(here("links/inner")), "sub");
  assert.equal(readFileSync(here("links/hard"), "utf8"), "x\n");
});

test("- is an archive on standard input or output", async () => {
  const long = "long-".repeat(40);
  await inside(`mkdir -p /work/piped/${long} /work/out && echo deep > /work/piped/${long}/file && cd /work/piped && ln ${long}/file hard && ln -s hard soft`);
  const through = (command: string) => execa("bash", ["-o", "pipefail", "-c", command], { cwd: cli.folder, env: cli.environment, extendEnv: false });
  await through("./sandgate cp -q box:/work/piped - | tar -x");
  assert.equal(readFileSync(here("piped", long, "file"), "utf8"), "deep\n");
  assert.equal(readFileSync(here("piped/hard"), "utf8"), "deep\n");
  assert.equal(lstatSync(here("piped/hard")).ino, lstatSync(here("piped", long, "file")).ino);
  assert.equal(readlinkSync(here("piped/soft")), "hard");
  assert.equal((await through("./sandgate cp -q box:/work/tree - | (sleep 0.2; tar -t)")).stderr, "");
  assert.equal((await through("./sandgate cp box:/work/piped/. - | tar -t | sort | head -n 2")).stdout, "./\nhard");
  assert.equal((await through("./sandgate cp box:/work/tree/a.txt - | tar -x -O")).stdout, "a");
  assert.equal((await through("tar -c tree | ./sandgate cp - box:/work/out")).stderr, "Copied 9 files and folders, 2.9 MiB");
  const { files, skipped } = JSON.parse((await through("tar -c -z piped | ./sandgate cp --json - box:/work/out")).stdout);
  assert.deepEqual({ files, skipped }, { files: 5, skipped: 0 });
  assert.equal(await inside("cd /work/out && ls -d * && stat -c '%a %Y' tree/a.txt && cat piped/hard && ls -A /tmp"), "piped\ntree\n750 1700000000\ndeep");
  // What makes the archive is a program of the sandbox's own.
  await inside("mv /bin/tar /bin/real-tar && printf '#!/bin/sh\\nexec real-tar -cPf - ../passwd\\n' > /bin/tar && chmod 755 /bin/tar && echo x > /work/passwd");
  await assert.rejects(through("./sandgate cp box:/work/piped -"), /the archive is refused: it has an entry "\.\.\/passwd"/);
  await inside("mv /bin/real-tar /bin/tar");
  for (const [command, code, message] of [
    ["echo no archive | ./sandgate cp - box:/work/out", 1, /could not be unpacked/],
    ["tar -c tree | ./sandgate cp - box:/none", 1, /there is no folder \/none in the sandbox/],
    ["./sandgate cp - -", 2, /one of the two must be SANDBOX:PATH/],
    ["./sandgate cp --json box:/work -", 2, /--json/],
    ["./sandgate cp box:/work - > /dev/full", 1, /no space left/i],
    ["./sandgate ls > /dev/full", 1, /no space left/i],
    ["./sandgate cp box:/none -", 1, /there is no file or folder \/none/],
  ] as const) {
    const { exitCode, stderr } = await through(command).catch((error) => error);
    assert.equal(exitCode, code, stderr);
    assert.match(stderr, message);
  }
});
