/** What a user without administrator rights is told to have done. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { execa } from "execa";
import { hasSystemd } from "../../../systemd/setup/programs.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";
import { nobody } from "../../helpers/local-users.ts";
import { testInstance } from "../../helpers/prepare.ts";

const folder = fixture(temporaryFolder("set-up-advice", 0o755));
const instance = await testInstance(`${folder.path}/data`, {});

test("the one command that makes the runtime directory", { skip: hasSystemd() && "systemd makes it" }, async () => {
  const program = `import { createAdministrator } from "./systemd/setup/administrator.ts";
    import { runtimeDirectory } from "./systemd/setup/runtime-directory.ts";
    import { Terminal } from "./systemd/base/terminal.ts";
    const administrator = createAdministrator(new Terminal(process.stdout), new AbortController().signal);
    await runtimeDirectory({ name: "nobody", uid: ${nobody.uid}, gid: ${nobody.gid}, home: "/" }, administrator).provide({ say() {} });`;
  const options = { ...nobody, cwd: instance.paths.app, reject: false, stdin: "ignore", env: { PATH: process.env.PATH }, extendEnv: false } as const;
  const { exitCode, stderr } = await execa(`${instance.paths.app}/node_modules/.bin/node`, ["--input-type=module", "-e", program], options);
  assert.equal(exitCode, 1);
  const advice = /Have an administrator run this, then start again: (.*)/.exec(stderr)?.[1];
  assert.equal(advice, `install -d -m 0700 -o nobody /run/user/${nobody.uid}`);
});
