/** What a user without administrator rights is told to have done. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { execa } from "execa";
import { inMemory } from "../../../shared/util/mounts.ts";
import { hasSystemd } from "../../../systemd/setup/programs.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { nobody } from "../../helpers/local-users.ts";
import { testInstance } from "../../helpers/prepare.ts";

const folder = fixture(temporaryFolder("set-up-advice", 0o755));
const instance = await testInstance(`${folder.path}/data`, {});

/** A program that has nobody's runtime directory made: `step` is that. */
const programWith = (body: string): string => `import { statfsSync, statSync } from "node:fs";
  import { createAdministrator } from "./systemd/setup/administrator.ts";
  import { runtimeDirectory } from "./systemd/setup/runtime-directory.ts";
  import { Terminal } from "./systemd/base/terminal.ts";
  const administrator = createAdministrator(new Terminal(process.stdout), new AbortController().signal);
  const step = runtimeDirectory({ name: "nobody", uid: ${nobody.uid}, gid: ${nobody.gid}, home: "/" }, administrator);
  ${body}`;

test("without systemd, the runtime directory is in memory, as the login manager has it", {
  skip: (hasSystemd() && "systemd makes it") || (process.getuid?.() !== 0 && "mounts take root"),
}, async () => {
  const program = programWith(`const before = await step.lacks();
    await step.provide({ say() {} });
    const { uid, gid, mode } = statSync(before);
    console.log(JSON.stringify([before, await step.lacks(), statfsSync(before).type, uid, gid, mode & 0o777]));`);
  // On a disk of its own, for the time of this program.
  const alone = ["--mount", "sh", "-c", 'mount -t ramfs ramfs /run/user && exec "$@"', "sh"];
  const argv = [...alone, `${instance.paths.app}/node_modules/.bin/node`, "--input-type=module", "-e", program];
  const { stdout } = await execa("unshare", argv, { cwd: instance.paths.app, stdin: "ignore" });
  assert.deepEqual(JSON.parse(stdout.trim().split("\n").at(-1) ?? ""), [`/run/user/${nobody.uid}`, null, inMemory, nobody.uid, nobody.gid, 0o700]);
});

test("the one command that makes the runtime directory", { skip: hasSystemd() && "systemd makes it" }, async () => {
  const program = programWith("await step.provide({ say() {} });");
  const options = { ...nobody, cwd: instance.paths.app, reject: false, stdin: "ignore", env: { PATH: process.env.PATH }, extendEnv: false } as const;
  const { exitCode, stderr } = await execa(`${instance.paths.app}/node_modules/.bin/node`, ["--input-type=module", "-e", program], options);
  assert.equal(exitCode, 1);
  const advice = /Have an administrator run this, then start again: (.*)/.exec(stderr)?.[1];
  assert.equal(advice, `install -d -m 0700 -o nobody /run/user/${nobody.uid}`);
});
