/** Live sessions: echo time of a keystroke, start-up time, and throughput of large output. */
import type { Installation } from "../installation.ts";
import { type Contender, inParallel, timed, timing } from "../measure.ts";
import { startBareServer } from "../peers/peer.ts";
import { compare, own, type Row } from "../rows.ts";
import { BenchSession, type Echo, openEcho } from "../session-client.ts";
import { percentile } from "../statistics.ts";
import { roundsOf, type Setting } from "./setting.ts";

export const echoTask = (sessions: number): string => `keystroke, ${sessions} open session${sessions === 1 ? "" : "s"}`;
export const sessionCounts = [1, 100, 500] as const;
export const startTask = "session, true in a terminal";
export const firstByteTask = "session, first byte from a terminal";
export const bareEcho = "bare ws echo";
export const podmanTerminal = "podman exec -it";

const sessionsEach = 50;
const startsAtOnce = 8;
const MB = 1_000_000;
const outputBytes = 128 * 1_048_576;
export const outputTask = "session, cat of 128 MiB";
/** Echoes every byte immediately, like a program that reads keys. */
const echoCommand = "stty raw -echo; echo; exec cat";

export async function session(setting: Setting): Promise<Row[]> {
  return [...(await starts(setting)), ...(await firstBytes(setting)), ...(await keystrokes(setting)), ...(await output(setting))];
}

async function starts(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  return installation.withSandbox(async ({ id, containerId }) => {
    const contenders = [
      timing(own, () => timed(async () => (await BenchSession.start(installation.stack, id, { command: "true", tty: true })).ended)),
      // podman exec -it needs a terminal, which script provides.
      timing(podmanTerminal, () => installation.agent.time(["script", "-qec", `${installation.podman.join(" ")} exec -it ${containerId} true`, "/dev/null"])),
    ] as const;
    return compare(startTask, contenders, roundsOf(setting, "session start", { share: 0.2, warmUp: 2, turnMs: 100 }));
  });
}

async function firstBytes(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  return installation.withSandbox(async ({ id }) => {
    const firstByte = timing(own, async () => {
      const begunMs = performance.now();
      const started = await BenchSession.start(installation.stack, id, { command: "echo", tty: true });
      await started.written;
      const ms = performance.now() - begunMs;
      await started.ended;
      return ms;
    });
    return compare(firstByteTask, [firstByte], roundsOf(setting, firstByteTask, { share: 0.05, warmUp: 2, countMin: 50 }));
  });
}

async function keystrokes(setting: Setting): Promise<Row[]> {
  const { installation, say } = setting;
  const bare = await startBareServer("ws-echo.ts");
  const sandboxes: string[] = [];
  const open: { ours: BenchSession[]; bare: Echo[] } = { ours: [], bare: [] };
  try {
    const rows: Row[] = [];
    for (const size of sessionCounts) {
      say(`${echoTask(size)}: opening`);
      while (sandboxes.length * sessionsEach < size) sandboxes.push(await installation.create());
      await openSessions(installation, sandboxes, open.ours, size);
      while (open.bare.length < size) open.bare.push(await openEcho(bare.port));
      const rounds = roundsOf(setting, echoTask(size), { share: 0.1, warmUp: 20, countMin: 50, turnMs: 5 });
      // One keystroke at a time, each in another session, while all sessions are open.
      rows.push(...(await compare(echoTask(size), [inTurn(own, open.ours), inTurn(bareEcho, open.bare)], rounds)));
    }
    return rows;
  } finally {
    for (const echo of [...open.ours, ...open.bare]) echo.close();
    bare.stop();
    for (const id of sandboxes) await installation.delete(id);
  }
}

async function openSessions({ stack }: Installation, sandboxes: readonly string[], open: BenchSession[], size: number): Promise<void> {
  let next = open.length;
  await inParallel(startsAtOnce, size - open.length, async () => {
    const opened = await BenchSession.start(stack, sandboxes[Math.floor(next++ / sessionsEach)] as string, { command: echoCommand, tty: true });
    await opened.written;
    open.push(opened);
    return 0;
  });
}

function inTurn(name: string, echoes: readonly Echo[]): Contender<"ms"> {
  let turn = 0;
  return timing(name, () => (echoes[turn++ % echoes.length] as Echo).keystroke());
}

async function output(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  return installation.withSandbox(async ({ id, containerId }) => {
    await installation.execute(id, `head -c ${outputBytes} /dev/urandom > /root/bench-output`);
    const catAll = async (): Promise<void> => {
      const reading = await BenchSession.start(installation.stack, id, { command: "cat /root/bench-output" });
      await reading.ended;
      if (reading.bytes !== outputBytes) throw new Error(`the session wrote ${reading.bytes} bytes`);
    };
    const contenders = [
      timing(own, () => timed(catAll)),
      timing("podman exec", () =>
        installation.agent.time(["sh", "-c", '"$@" cat /root/bench-output | wc -c', "sh", ...installation.podman, "exec", containerId]),
      ),
    ] as const;
    const rounds = roundsOf(setting, outputTask, { share: 0.45, warmUp: 1 });
    return compare(outputTask, contenders, rounds, (ms) => ({ value: outputBytes / MB / (percentile(ms, 0.5) / 1_000), unit: "MB/s" }));
  });
}
