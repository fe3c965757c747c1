/** Carries out one step of a workload. */
import { randomBytes } from "node:crypto";
import type { Sandgate } from "../../shared/client/index.ts";
import type { SandboxHandle } from "../../shared/client/sandbox.ts";
import type { Session } from "../../shared/client/session/session.ts";
import type { Fleet } from "./fleet.ts";
import { StepFailure } from "./recorder.ts";
import { type ActionName, actionsOf, type Step } from "./workload.ts";

export const timeoutDefaultS = 60;

export interface ActionContext {
  readonly client: Sandgate;
  readonly fleet: Fleet;
  /** One of the prepared sandboxes, for the steps that need one. */
  readonly sandbox: SandboxHandle;
  /** Aborted when the step has taken too long, or the load is interrupted. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Records a time within the action. */
  mark(name: string, ms: number): void;
}

/** What is left to do after an action has been counted, such as deleting its sandbox, and how many bytes it has moved. */
interface Done {
  readonly bytes?: number;
  readonly after?: () => Promise<void>;
}

type Action<N extends ActionName> = (wanted: NonNullable<Step[N]>, context: ActionContext) => Promise<Done>;

const outcome = (exitCode: number): Done => {
  if (exitCode !== 0) throw new StepFailure(`exit_${exitCode}`, `a command ended with ${exitCode}`);
  return {};
};

const execute: Action<"execute"> = async (command, { sandbox, signal, timeoutMs }) =>
  outcome((await sandbox.execute(command, { timeout: Math.ceil(timeoutMs / 1_000), signal, timeoutMs })).exit_code);

const stream: Action<"stream"> = async (command, { sandbox, signal, mark }) => {
  const begunMs = performance.now();
  let bytes = 0;
  const execution = sandbox.executeAsync(command, { signal });
  for await (const { stdout = "", stderr = "" } of execution) {
    if (bytes === 0) mark("first output", performance.now() - begunMs);
    bytes += Buffer.byteLength(stdout) + Buffer.byteLength(stderr);
  }
  outcome((await execution.result).exit_code);
  return { bytes };
};

const upload: Action<"upload"> = async ({ path, bytes }, { sandbox, signal }) => {
  await sandbox.upload(path, randomBytesOnce(bytes), { signal });
  return { bytes };
};

const download: Action<"download"> = async ({ path }, { sandbox, signal }) => {
  let bytes = 0;
  for await (const piece of await sandbox.download(path, { signal })) bytes += piece.length;
  return { bytes };
};

const read: Action<"read"> = async (what, { client, sandbox, signal, timeoutMs }) => {
  const options = { signal, timeoutMs };
  if (what === "list") await client.sandboxes.list({ pageSize: 20, ...options }).page();
  else if (what === "status") await sandbox.status(options);
  else await client.sandboxes.get(sandbox.id, options);
  return {};
};

/** Creating is never aborted, so that its sandbox is known and can be deleted. */
const create: Action<"create"> = async ({ run }, { client, fleet, signal, timeoutMs, mark }) => {
  const begunMs = performance.now();
  const sandbox = await fleet.create(client, timeoutMs);
  const after = async (): Promise<void> => {
    const deletionMs = performance.now();
    await fleet.delete(sandbox);
    mark("deleted", performance.now() - deletionMs);
  };
  mark("created", performance.now() - begunMs);
  try {
    outcome((await sandbox.execute(run, { timeout: Math.ceil(timeoutMs / 1_000), signal, timeoutMs })).exit_code);
  } catch (error) {
    await after().catch(() => undefined); // the removal at the end tries again, and tells
    throw error;
  }
  return { after };
};

const session: Action<"session"> = async ({ command, keys = 0 }, { sandbox, signal, mark }) => {
  const begunMs = performance.now();
  const terminal = await sandbox.session({ command, tty: true, signal, detach_timeout: 0 });
  const output = terminal[Symbol.asyncIterator]();
  const next = async (): Promise<number> => {
    const { value, done } = await output.next();
    return done ? 0 : value.bytes.length;
  };
  const end = async (): Promise<void> => {
    await output.return();
    terminal.kill();
    await terminal.wait();
  };
  try {
    let bytes = await next();
    mark("first output", performance.now() - begunMs);
    if (keys > 0) {
      await typeKeys(terminal, keys, next, mark);
      return { bytes: bytes + keys, after: end };
    }
    for (let more = bytes; more > 0; bytes += more) more = await next();
    outcome((await terminal.exited).exit_code);
    return { bytes };
  } catch (error) {
    await end().catch(() => undefined); // the session is gone, or goes with its sandbox
    throw error;
  }
};

async function typeKeys(terminal: Session, keys: number, echo: () => Promise<number>, mark: ActionContext["mark"]): Promise<void> {
  for (let key = 0; key < keys; key++) {
    const typedMs = performance.now();
    await terminal.write("k");
    if ((await echo()) === 0) throw new StepFailure("session_ended", "the command in the terminal ended before all keys were typed");
    mark("keystroke", performance.now() - typedMs);
  }
}

const carriers: { readonly [N in ActionName]: Action<N> } = { execute, stream, session, upload, download, create, read };

/** @throws {StepFailure | APIError} if the action failed; the signal's reason */
export function perform(step: Step, context: ActionContext): Promise<Done> {
  const [name] = actionsOf(step) as [ActionName];
  return (carriers[name] as Action<ActionName>)(step[name] as never, context);
}

const random = new Map<number, Uint8Array>();

/** Random bytes, which nothing on the way can compress. Generated once for each size. */
function randomBytesOnce(size: number): Uint8Array {
  const bytes = random.get(size) ?? randomBytes(size);
  random.set(size, bytes);
  return bytes;
}
