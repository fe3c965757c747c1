/** Throughput: the output of a command as it is written, and whole files in both directions. */
import { join } from "node:path";
import type { Installation, Sandbox } from "../installation.ts";
import { type Contender, takeTurns, timed } from "../measure.ts";
import { areTight, own, type Row, rowsOf } from "../rows.ts";
import { percentile } from "../statistics.ts";
import { roundsOf, type Setting } from "./setting.ts";

const MB = 1_000_000;
const outputBytes = 128 * 1_048_576;
const fileBytes = 64 * MB;
const command = "head -c 128M /dev/zero | tr '\\0' 'x'";
const fileInside = "/root/bench-file";

type Metric = "output" | "upload" | "download";

/** @property shareMin the target: this part of the peer's speed */
export const streamTasks: Readonly<Record<Metric, { title: string; bytes: number; peer: string; shareMin: number }>> = {
  output: { title: "stream 128 MiB of output", bytes: outputBytes, peer: "podman exec", shareMin: 0.5 },
  upload: { title: "upload 64 MB", bytes: fileBytes, peer: "podman cp", shareMin: 0.7 },
  download: { title: "download 64 MB", bytes: fileBytes, peer: "podman cp", shareMin: 0.7 },
};

export async function stream(setting: Setting): Promise<Row[]> {
  const { installation, signal } = setting;
  return installation.withSandbox(async (sandbox) => {
    const file = join(installation.agent.scratchDir, "file");
    await installation.agent.run(["sh", "-c", 'head -c "$1" /dev/urandom > "$2"', "sh", String(fileBytes), file]);
    const contenders = [sandgate(installation, sandbox, file, signal), podman(installation, sandbox, file)];
    const metrics = Object.keys(streamTasks) as Metric[];
    const { inARow: samples } = await takeTurns(contenders, roundsOf(setting, "stream", { share: 1, warmUp: 1 }), (taken) => areTight(taken, metrics));
    return metrics.flatMap((metric) => {
      const { title, bytes, peer } = streamTasks[metric];
      const timings = (name: string, contender: string) => ({ contender, rounds: samples[name]?.[metric] ?? [] });
      const rate = (ms: readonly number[]): Row["rate"] => ({ value: bytes / MB / (percentile(ms, 0.5) / 1_000), unit: "MB/s" });
      return rowsOf(title, [timings(own, own), timings("podman", peer)], rate);
    });
  });
}

/** Files go by a program, as with Podman: a client in JavaScript takes more of the machine than all of Sandgate. */
function sandgate({ api, agent, stack }: Installation, { id }: Sandbox, file: string, signal: AbortSignal): Contender<Metric> {
  const target = `/v1/sandboxes/${id}`;
  const query = `path=${encodeURIComponent(fileInside)}`;
  const curl = (call: string, ...options: string[]): Promise<number> =>
    agent.time(["curl", "--silent", "--show-error", "--fail", "--header", `x-api-key: ${stack.apiKey}`, ...options, `${stack.url}${target}/${call}?${query}`]);
  return {
    name: own,
    measure: async () => ({
      output: await timed(async () => {
        const response = await api.open({ method: "POST", path: `${target}/execute_async`, json: { command }, signal });
        await readOutput(response);
      }),
      upload: await curl("upload", "--request", "POST", "--header", "content-type: application/octet-stream", "--header", "expect:", "--upload-file", file),
      download: await curl("download", "--output", `${file}-sandgate`),
    }),
  };
}

/** Reads an output stream to its end. @throws {Error} if it is incomplete or the command failed */
async function readOutput(response: AsyncIterable<Buffer>): Promise<void> {
  let bytes = 0;
  let last = "";
  for await (const chunk of response) {
    bytes += chunk.length;
    last = chunk.length < 64 ? last + chunk.toString("latin1") : chunk.toString("latin1", chunk.length - 64);
  }
  if (bytes < outputBytes || !last.endsWith('{"exit_code":0}\n'))
    throw new Error(`the output stream is not whole: ${bytes} bytes, its end is ${last.slice(-64)}`);
}

function podman({ agent }: Installation, { containerId }: Sandbox, file: string): Contender<Metric> {
  return {
    name: "podman",
    measure: async () => {
      const output = await agent.run(["sh", "-c", 'podman exec "$1" sh -c "$2" | wc -c', "sh", containerId, command]);
      if (Number(output.stdout) !== outputBytes) throw new Error(`podman exec wrote ${output.stdout.trim()} bytes`);
      const upload = await agent.run(["podman", "cp", file, `${containerId}:${fileInside}`]);
      const download = await agent.run(["podman", "cp", `${containerId}:${fileInside}`, `${file}-podman`]);
      return { output: output.ms, upload: upload.ms, download: download.ms };
    },
  };
}
