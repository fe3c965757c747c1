/** Small files: one of a few bytes each way, beside a command, and a thousand at once. */
import { createReadStream, statSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Installation, Sandbox } from "../installation.ts";
import { timed, timing } from "../measure.ts";
import { compare, own, type Row } from "../rows.ts";
import { executeTask } from "./execute.ts";
import { roundsOf, type Setting } from "./setting.ts";

const smallBytes = 20;
const count = 1_000;

export const smallTasks = { upload: `upload ${smallBytes} bytes`, download: `download ${smallBytes} bytes` } as const;
export const manyTask = `upload ${count} files as one archive`;
const turnMs = 60;

export async function files(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  return installation.withSandbox(async (sandbox) => {
    const contentOf = Buffer.alloc(smallBytes, "x");
    const upload = (): Promise<unknown> => put(installation, sandbox, "path=/root/small", { source: Readable.from([contentOf]), bytes: smallBytes });
    const download = async (): Promise<unknown> =>
      (await installation.api.open({ method: "GET", path: `/v1/sandboxes/${sandbox.id}/download?path=/root/small` })).toArray();
    await upload();
    const rounds = (what: string, share: number) => roundsOf(setting, what, { share, warmUp: 3, countMin: 10, turnMs });
    const command = timing(executeTask, () => timed(() => installation.execute(sandbox.id, "true")));
    return [
      ...(await compare(smallTasks.upload, [timing(own, () => timed(upload)), command], rounds("uploads", 0.25))),
      ...(await compare(smallTasks.download, [timing(own, () => timed(download)), command], rounds("downloads", 0.25))),
      ...(await many(setting, sandbox)),
    ];
  });
}

/** Each contender has a folder of its own: what `podman cp` makes belongs to no user of the sandbox. */
async function many(setting: Setting, sandbox: Sandbox): Promise<Row[]> {
  const { installation } = setting;
  const { agent } = installation;
  const [folder, archive] = [join(agent.scratchDir, "many"), join(agent.scratchDir, "many.tar")];
  const make = 'mkdir "$1" && cd "$1" && head -c 1000000 /dev/urandom | split -b 1000 -a 3 - file- && tar -cf "$2" .';
  await agent.run(["sh", "-c", make, "sh", folder, archive]);
  const ours = timing(own, () =>
    timed(() => put(installation, sandbox, "path=/root/many&archive=tar", { source: createReadStream(archive), bytes: statSync(archive).size })),
  );
  const peer = timing("podman cp", () => agent.time([...installation.podman, "cp", `${folder}/.`, `${sandbox.containerId}:/root/many-podman`]));
  return compare(manyTask, [ours, peer], roundsOf(setting, "archives", { share: 0.5, warmUp: 1 }));
}

const put = ({ api }: Installation, { id }: Sandbox, query: string, file: { source: Readable; bytes: number }): Promise<unknown> =>
  api.json({ method: "POST", path: `/v1/sandboxes/${id}/upload?${query}`, file });
