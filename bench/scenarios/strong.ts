/** Strong sandboxes beside standard ones: what it costs that gVisor's kernel answers, and not the host's. */
import { Installation, type Sandbox, withoutPool } from "../installation.ts";
import { type Contender, timed, timedResult, timing } from "../measure.ts";
import { compare, own, type Row } from "../rows.ts";
import { createExecuteDelete } from "./create.ts";
import { executeTask } from "./execute.ts";
import { roundsOf, type Setting } from "./setting.ts";
import { streamOutput, streamTasks } from "./stream.ts";

const strongContender = "strong";
const strong = { isolation: "strong" } as const;
/** Other tasks of these names are compared with something else. */
const inBoth = (task: string): string => `${task}, standard and strong`;

/** By what they are called in the report. */
const commands: Readonly<Record<string, string>> = {
  [executeTask]: "true",
  "start Python": "python3 -c pass",
  "count to 10 million in Python": "python3 -c 'for i in range(10000000): pass'",
  "start 300 processes": "for i in $(seq 300); do /bin/true; done",
  "write and remove 5,000 small files": "mkdir /root/many && cd /root/many && for i in $(seq 5000); do echo $i > $i; done && cd / && rm -r /root/many",
  "find /usr": "find /usr > /dev/null",
};

/** Without a pool, which is for standard sandboxes, so that a create does the same work for both. */
export async function strongBesideStandard(setting: Setting): Promise<Row[]> {
  const installation = await Installation.start(withoutPool);
  try {
    const creates = [createOf(own, installation), createOf(strongContender, installation, strong)] as const;
    const rows = await compare(inBoth("create from nothing"), creates, roundsOf(setting, "create", { share: 0.15, warmUp: 1 }));
    const others = await installation.withSandbox((standard) => installation.withSandbox((other) => inside(setting, installation, standard, other), strong));
    return [...rows, ...others];
  } finally {
    await installation.stop();
  }
}

const createOf = (name: string, installation: Installation, wanted?: typeof strong): Contender<"ms"> =>
  timing(name, async () => (await createExecuteDelete(installation, wanted)).create);

async function inside(setting: Setting, installation: Installation, standard: Sandbox, other: Sandbox): Promise<Row[]> {
  const both = (measure: (sandbox: Sandbox) => Promise<number>) =>
    [timing(own, () => measure(standard)), timing(strongContender, () => measure(other))] as const;
  const rounds = (what: string, share: number) => roundsOf(setting, what, { share, warmUp: 1 });
  const rows: Row[] = [];
  for (const [task, command] of Object.entries(commands)) {
    rows.push(
      ...(await compare(
        task,
        both(({ id }) => timed(() => installation.execute(id, command))),
        rounds(task, 0.1),
      )),
    );
  }
  const { title } = streamTasks.output;
  rows.push(
    ...(await compare(
      title,
      both((sandbox) => streamOutput(installation, sandbox)),
      rounds(title, 0.15),
    )),
  );
  rows.push(
    ...(await compare(
      "snapshot",
      both((sandbox) => snapshot(installation, sandbox)),
      rounds("snapshot", 0.1),
    )),
  );
  return rows;
}

async function snapshot({ api }: Installation, { id }: Sandbox): Promise<number> {
  const { ms, result } = await timedResult(() => api.json<{ id: string }>({ method: "POST", path: `/v1/sandboxes/${id}/snapshot`, json: {} }));
  await api.json({ method: "DELETE", path: `/v1/snapshots/${result.id}` });
  return ms;
}
