/** The README's tour, run as printed: it works, prints only answers, and leaves nothing behind. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { execa } from "execa";
import { openClient } from "../../helpers/client.ts";
import { fixture } from "../../helpers/fixture.ts";
import { temporaryFolder } from "../../helpers/folder.ts";

const { account, client } = await fixture(openClient());
const { path: home } = fixture(temporaryFolder("tour"));

/** The blocks of shell commands of a section, one after another. */
function blocksOf(title: string): string[] {
  const [, section = ""] = readFileSync("README.md", "utf8").split(`\n## ${title}\n`);
  const [own = ""] = section.split("\n## ");
  return [...own.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
}

test("every line works with nothing on standard error, and all that was made is gone", async () => {
  const { url, apiKey } = account.api;
  mkdirSync(join(home, ".local/share/sandgate"), { recursive: true });
  writeFileSync(join(home, ".local/share/sandgate/api-key"), `${apiKey}\n`);
  const [settings = "", ...blocks] = blocksOf("Two minutes with curl");
  assert.ok(blocks.length >= 5);
  // An installation on this machine keeps its key where the tour looks first.
  const here = settings.replace("http://127.0.0.1:8080", url).replace("/var/lib/sandgate/", `${home}/none/`);
  const script = [here, ...blocks]
    .flatMap((block) => block.trimEnd().split("\n"))
    .map((line) => `${line}\n`)
    .join("[ $? = 0 ] || echo FAILED >&2\necho; echo ---\n");
  const { exitCode, stdout, stderr } = await execa("sh", ["-c", script], {
    env: { PATH: process.env.PATH ?? "", HOME: home },
    extendEnv: false,
    reject: false,
  });
  assert.deepEqual([exitCode, stderr], [0, ""]);
  assert.doesNotMatch(stdout, /"error"/);
  assert.match(stdout, /"stdout":"42\\n/);
  assert.match(stdout, /\{"stdout":"3\\n"\}\n\{"exit_code":0\}\n/);
  assert.match(stdout, /\n# Sandgate\n/);
  assert.match(stdout, /\n\.\/hello\.txt\n/);
  assert.match(stdout, /"name":"after-lunch"[\s\S]*"name":"tour"/);
  assert.deepEqual(await client.sandboxes.list().all(), []);
  assert.deepEqual(await client.snapshots.list().all(), []);
});
