/** The calls `upload`, `download` and `stat`. */

import type { Reply, Request } from "../../shared/bus/contract/contract.ts";
import { SandgateError } from "../../shared/errors.ts";
import { Stream } from "../../shared/stream/stream.ts";
import { step } from "../../shared/tracing/spans.ts";
import type { WorkerContext } from "../context.ts";
import { openDownload } from "../files/download.ts";
import { statFile } from "../files/stat.ts";
import { takeUpload, temporaryNameOf } from "../files/upload.ts";
import { refuseUnlessServing } from "../phase.ts";
import { type Activity, type LiveSandbox, storedUse } from "../sandboxes/registry.ts";

/** Bytes of a GB as the `storage` field counts them. */
const GB = 1024 ** 3;

/** Replies when the bytes may come; the outcome is the end of the stream. */
export async function upload(context: WorkerContext, call: Request<"upload">): Promise<object> {
  refuseUnlessServing(context);
  const sandbox = context.sandboxes.running(call.sandbox_id, call.account_id);
  if (sandbox.diskStale) await context.usage.measureDisk(sandbox);
  refuseBeyondStorage(context, sandbox, call.size_hint ?? 0);
  const stream = Stream.answer(context.hub, call.to, { windowBytes: context.config.streamWindowBytes });
  const account = (bytes: number): void => {
    refuseBeyondStorage(context, sandbox, bytes);
    sandbox.layer = { ...sandbox.layer, bytes: sandbox.layer.bytes + bytes };
  };
  const job = { oci: context.oci, container: sandbox.container, id: call.request_id, stream, sizeHint: call.size_hint ?? 0, account };
  const run = (): Promise<object> => takeUpload(job).finally(() => context.usage.noteActivity(sandbox));
  follow(context, { sandbox, stream, run, temporaryName: temporaryNameOf(call.request_id) });
  return {};
}

/** Replies with the size where it is known; the bytes come as a stream. */
export async function download(context: WorkerContext, call: Request<"download">): Promise<{ size?: number }> {
  refuseUnlessServing(context);
  const sandbox = context.sandboxes.running(call.sandbox_id, call.account_id);
  // Before the file is opened, so that a client that goes away meanwhile is noticed.
  const stream = Stream.answer(context.hub, call.to);
  const file = await openDownload(context.oci, sandbox.container, call, stream.signal).catch((error: unknown) => {
    stream.close();
    throw error;
  });
  follow(context, { sandbox, stream, run: () => file.send(stream) });
  return file.size === undefined ? {} : { size: file.size };
}

export async function stat(context: WorkerContext, call: Request<"stat">): Promise<Reply<"stat">> {
  const sandbox = context.sandboxes.running(call.sandbox_id, call.account_id);
  return statFile(context.oci, sandbox.container, call.path);
}

function refuseBeyondStorage(context: WorkerContext, sandbox: LiveSandbox, bytes: number): void {
  const { record } = sandbox;
  if (storedUse(sandbox).bytes + bytes > record.storage * GB) {
    throw new SandgateError("insufficient_storage", `the file does not fit into the sandbox's storage of ${record.storage} GB`);
  }
  const shortage = context.usage.diskShortage({ bytes, files: 1 });
  if (shortage) throw new SandgateError("insufficient_storage", shortage);
}

interface Transfer {
  readonly sandbox: LiveSandbox;
  readonly stream: Stream;
  readonly run: () => Promise<object>;
  readonly temporaryName?: string;
}

/** Runs a transfer to its end, which is that of its stream; until then it can be ended from outside. */
function follow({ log }: WorkerContext, { sandbox, stream, run, ...names }: Transfer): void {
  const activity: Activity = {
    kind: "transfer",
    ...names,
    abort: (error) => stream.fail(error),
    killFor: (reason) => stream.fail(new SandgateError("insufficient_storage", reason)),
  };
  sandbox.activities.add(activity);
  step("transfer", run)
    .then((summary) => stream.end(summary))
    .catch((thrown: unknown) => {
      const error = SandgateError.from(thrown);
      if (error.code === "internal_error") log.error({ err: thrown }, "a file transfer failed");
      stream.fail(error);
    })
    .finally(() => sandbox.activities.delete(activity));
}
