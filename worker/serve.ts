/** The worker's table of calls. The only way in from NATS. */
import { type Answers, answer } from "../shared/bus/calls.ts";
import { type Reply, type Request, verbsOf, type WorkerVerb } from "../shared/bus/contract/contract.ts";
import type { Bus } from "../shared/bus/nats.ts";
import { processOfWorker } from "../shared/bus/subjects.ts";
import { SandgateError } from "../shared/errors.ts";
import type { WorkerContext } from "./context.ts";
import { execute } from "./handlers/exec.ts";
import { download, stat, upload } from "./handlers/files.ts";
import { line } from "./handlers/line.ts";
import { confirm, hold, receive, release, takeBack } from "./handlers/move.ts";
import { forgetAccount, listImages, removeImage, setCordoned } from "./handlers/operations.ts";
import { create, remove } from "./handlers/sandbox.ts";
import { sessionAttach, sessionStart, sessions } from "./handlers/session.ts";
import { deleteSnapshot, restore, snapshot } from "./handlers/snapshot.ts";
import { logs, status } from "./handlers/usage.ts";

type Handlers = { readonly [V in WorkerVerb]: (context: WorkerContext, request: Request<V>) => Promise<Reply<V>> };

const handlers: Handlers = {
  create,
  delete: remove,
  execute,
  upload,
  download,
  stat,
  status,
  logs,
  drain: setCordoned,
  forgetAccount,
  images: listImages,
  removeImage,
  snapshot,
  restore,
  deleteSnapshot,
  hold,
  receive,
  confirm,
  release,
  takeBack,
  sessionStart,
  sessionAttach,
  sessions,
  line,
};

/** Starts to answer calls. */
export function serve(bus: Bus, context: WorkerContext): void {
  const counted = verbsOf("worker").map((verb) => [verb, (request: Request<typeof verb>) => countedCall(context, verb, request)]);
  const answers = Object.fromEntries(counted) as Answers<"worker">;
  answer(bus, "worker", processOfWorker(context.peers.peer), answers);
  // Gateways of versions without claims call it so.
  answer(bus, "worker", context.workerId, answers);
}

/** Calls in progress are waited for when the worker stops. One that lay unread while this process stood still may be its successor's. */
async function countedCall<V extends WorkerVerb>(context: WorkerContext, verb: V, request: Request<V>): Promise<Reply<V>> {
  const noted = notedCall(context, verb, request);
  context.counters.calls++;
  try {
    await context.claim.sure();
    const reply = await handlers[verb](context, request);
    noted("ok");
    return reply;
  } catch (error) {
    noted(SandgateError.from(error).code);
    throw error;
  } finally {
    context.counters.calls--;
  }
}

/** Calls that change nothing; there may be very many of them. */
const looking: ReadonlySet<WorkerVerb> = new Set(["stat", "download", "status", "logs", "images", "sessions", "line"]);

/** Returns what logs how a call was answered: by its ids it is found from the gateway's line of the same call. */
function notedCall({ log }: WorkerContext, verb: WorkerVerb, request: object): (result: string) => void {
  const startedAtMs = performance.now();
  return (result) => {
    const { sandbox_id: sandbox, execution_id: execution, session_id: session } = request as Readonly<Record<string, unknown>>;
    const duration_ms = Math.round(performance.now() - startedAtMs);
    log[looking.has(verb) ? "debug" : "info"]({ event: "call", call: verb, sandbox, execution, session, result, duration_ms }, "a call");
  };
}
