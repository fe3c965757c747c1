/** Throughput: the output of a command as it is written, and whole files in both directions. */
import { join } from "node:path";
import { testPort } from "../../test/helpers/ports.ts";
import { curl, withFile, withJson } from "../curl.ts";
import { Installation, type Sandbox } from "../installation.ts";
import { type Contender, takeTurns } from "../measure.ts";
import { areTight, own, type Row, rowsOf } from "../rows.ts";
import { percentile } from "../statistics.ts";
import { roundsOf, type Setting } from "./setting.ts";

const MB = 1_000_000;
const outputBytes = 128 * 1_048_576;
const fileBytes = 64 * MB;
const command = "head -c 128M /dev/zero | tr '\\0' 'x'";
const fileInside = "/root/bench-file";

/** What gateways and workers on different machines have between them. */
export const overTls = "sandgate, over TLS";
/** And where the port for that cannot be reached. */
export const overNats = "sandgate, over NATS";

type Metric = "output" | "upload" | "download";

/** @property shareMin the target: this part of the peer's speed */
export const streamTasks: Readonly<Record<Metric, { title: string; bytes: number; peer: string; shareMin: number }>> = {
  output: { title: "stream 128 MiB of output", bytes: outputBytes, peer: "podman exec", shareMin: 0.5 },
  upload: { title: "upload 64 MB", bytes: fileBytes, peer: "podman cp", shareMin: 0.7 },
  download: { title: "download 64 MB", bytes: fileBytes, peer: "podman cp", shareMin: 0.7 },
};

export async function stream(setting: Setting): Promise<Row[]> {
  const listening = { SANDGATE_LINES_HOST: "127.0.0.1", SANDGATE_LINES_PORT: String(await testPort()) };
  return setting.installation.withSandbox((sandbox) =>
    distantly(listening, (tls) => distantly({ SANDGATE_LINES_PORT: "0" }, (nats) => compareAll(setting, sandbox, { [overTls]: tls, [overNats]: nats }))),
  );
}

/** A sandbox of an installation whose parts do not share a machine. */
type Distant = readonly [Installation, Sandbox];

/** @param settings what the parts have between them */
async function distantly<T>(settings: Readonly<Record<string, string>>, work: (distant: Distant) => Promise<T>): Promise<T> {
  const installation = await Installation.start({ SANDGATE_LINES_DIR: "", ...settings });
  try {
    return await installation.withSandbox((sandbox) => work([installation, sandbox]));
  } finally {
    await installation.stop();
  }
}

async function compareAll(setting: Setting, sandbox: Sandbox, distant: Readonly<Record<string, Distant>>): Promise<Row[]> {
  const { installation } = setting;
  const file = join(installation.agent.scratchDir, "file");
  await installation.agent.run(["sh", "-c", 'head -c "$1" /dev/urandom > "$2"', "sh", String(fileBytes), file]);
  const others = Object.entries(distant).map(([name, place]) => sandgate(name, ...place, file));
  const contenders = [sandgate(own, installation, sandbox, file), ...others, podmanProgram(installation, sandbox, file)];
  const metrics = Object.keys(streamTasks) as Metric[];
  const { inARow: samples } = await takeTurns(contenders, roundsOf(setting, "stream", { share: 1, warmUp: 1 }), (taken) => areTight(taken, metrics));
  return metrics.flatMap((metric) => {
    const { title, bytes, peer } = streamTasks[metric];
    const timings = (name: string, contender: string) => ({ contender, rounds: samples[name]?.[metric] ?? [] });
    const rate = (ms: readonly number[]): Row["rate"] => ({ value: bytes / MB / (percentile(ms, 0.5) / 1_000), unit: "MB/s" });
    return rowsOf(title, [timings(own, own), ...others.map(({ name }) => timings(name, name)), timings("podman", peer)], rate);
  });
}

/** Milliseconds until all output of a command has come by the API. @throws {Error} if it is not whole */
export async function streamOutput(installation: Installation, { id }: Sandbox): Promise<number> {
  const options = ["--no-buffer", "--write-out", "%{stderr}%{size_download}", ...withJson({ command })];
  const execute = curl(installation, `/v1/sandboxes/${id}/execute_async`, ...options);
  const { ms, stdout, stderr } = await installation.agent.run(["sh", "-c", '"$@" | tail -c 64', "sh", ...execute]);
  if (Number(stderr) < outputBytes || !stdout.endsWith('{"exit_code":0}\n'))
    throw new Error(`the output stream is not whole: ${stderr} bytes, its end is ${stdout}`);
  return ms;
}

/** @param file what is uploaded, where the commands of all installations can read it */
function sandgate(name: string, installation: Installation, sandbox: Sandbox, file: string): Contender<Metric> {
  const { agent } = installation;
  const target = `/v1/sandboxes/${sandbox.id}`;
  const query = `path=${encodeURIComponent(fileInside)}`;
  const upload = curl(installation, `${target}/upload?${query}`, ...withFile(file));
  const download = curl(installation, `${target}/download?${query}`, "--output", `${file}-sandgate`);
  return {
    name,
    measure: async () => ({
      output: await streamOutput(installation, sandbox),
      upload: await agent.time(upload),
      download: await agent.time(download),
    }),
  };
}

function podmanProgram({ agent, podman }: Installation, { containerId }: Sandbox, file: string): Contender<Metric> {
  return {
    name: "podman",
    measure: async () => {
      const output = await agent.run(["sh", "-c", '"$@" | wc -c', "sh", ...podman, "exec", containerId, "sh", "-c", command]);
      if (Number(output.stdout) !== outputBytes) throw new Error(`podman exec wrote ${output.stdout.trim()} bytes`);
      const upload = await agent.run([...podman, "cp", file, `${containerId}:${fileInside}`]);
      const download = await agent.run([...podman, "cp", `${containerId}:${fileInside}`, `${file}-podman`]);
      return { output: output.ms, upload: upload.ms, download: download.ms };
    },
  };
}
