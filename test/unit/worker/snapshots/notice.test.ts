/** The signal by which programs learn that they are copies. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readlinkSync } from "node:fs";
import { test } from "node:test";
import { noticeVariable, tellCopied } from "../../../../worker/snapshots/notice.ts";

const pidNamespace = readlinkSync("/proc/self/ns/pid");

/** A shell that runs a command when it gets SIGUSR2, and says first that it is there. */
async function shell(script: string) {
  const child = spawn("unshare", ["--pid", "--fork", "--kill-child", "sh", "-c", script], { stdio: ["ignore", "pipe", "inherit"] });
  const said: string[] = [];
  child.stdout.setEncoding("utf8").on("data", (text: string) => said.push(text));
  await once(child.stdout, "data");
  return { child, said };
}

test("the programs of a copy that catch the signal get it, and no others", async () => {
  const { child, said } = await shell("sleep 60 & trap 'echo told; kill $!; exit 5' USR2; echo there; readlink /proc/self/ns/pid; wait");
  try {
    const inside = readlinkSync(`/proc/${child.pid}/ns/pid_for_children`);
    assert.notEqual(inside, pidNamespace);
    for (const environment of [{}, { [noticeVariable]: "no signal" }, { [noticeVariable]: "SIGUSR1" }]) tellCopied({ pidNamespace: inside }, environment);
    tellCopied({ pidNamespace: inside }, { [noticeVariable]: "usr2" });
    const [code] = (await once(child, "exit")) as [number];
    assert.equal(code, 5);
    assert.match(said.join(""), /^there\n.*told\n$/s);
  } finally {
    child.kill("SIGKILL");
  }
});
