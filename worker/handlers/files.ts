/** The calls `upload`, `download` and `stat`. */

import type { DownloadCall, StatCall, StatReply, StreamTarget, UploadCall } from "../../shared/bus/messages.ts";
import { SandgateError } from "../../shared/errors.ts";
import { StreamReceiver } from "../../shared/stream/receiver.ts";
import { StreamSender } from "../../shared/stream/sender.ts";
import { inBackground } from "../../shared/util/background.ts";
import type { WorkerContext } from "../context.ts";
import { openDownload } from "../files/download.ts";
import { statFile } from "../files/stat.ts";
import { takeUpload, temporaryNameOf } from "../files/upload.ts";
import { type Activity, type LiveSandbox, storedUse } from "../sandboxes/registry.ts";

/** Bytes of a GB as the `storage` field counts them. */
const GB = 1024 ** 3;

/** Replies with where to send the bytes; the outcome comes as the end of the stream that the call names. */
export async function upload(context: WorkerContext, call: UploadCall): Promise<StreamTarget> {
  if (context.draining) throw new SandgateError("unavailable", "the worker is shutting down");
  const sandbox = context.sandboxes.running(call.sandbox_id, call.account_id);
  if (sandbox.diskStale) await context.usage.measureDisk(sandbox);
  refuseBeyondStorage(context, sandbox, call.size_hint ?? 0);
  const outcome = new StreamSender(context.hub, call.to);
  const receiver = new StreamReceiver(context.hub, context.config.streamWindowBytes).connectTo(call.to.peer);
  const ending = new AbortController();
  const activity = {
    ...endingBy((error) => {
      receiver.cancel(error);
      ending.abort(error);
    }),
    temporaryName: temporaryNameOf(call.request_id),
  };
  sandbox.activities.add(activity);
  const signal = AbortSignal.any([outcome.signal, ending.signal]);
  const account = (bytes: number): void => {
    refuseBeyondStorage(context, sandbox, bytes);
    sandbox.layer = { ...sandbox.layer, bytes: sandbox.layer.bytes + bytes };
  };
  takeUpload({ oci: context.oci, container: sandbox.container, id: call.request_id, receiver, signal, account })
    .then((done) => outcome.end(done))
    .catch((thrown: unknown) => {
      const error = logged(context, thrown, call.request_id);
      receiver.cancel(error);
      outcome.fail(error);
    })
    .finally(() => {
      sandbox.activities.delete(activity);
      sandbox.diskStale = true;
    });
  return receiver.target;
}

/** Replies with the size where it is known; the bytes come as a stream. */
export async function download(context: WorkerContext, call: DownloadCall): Promise<{ size?: number }> {
  if (context.draining) throw new SandgateError("unavailable", "the worker is shutting down");
  const sandbox = context.sandboxes.running(call.sandbox_id, call.account_id);
  // Before the file is opened, so that a client that goes away meanwhile is noticed.
  const sender = new StreamSender(context.hub, call.to);
  const file = await openDownload(context.oci, sandbox.container, call, sender.signal).catch((error: unknown) => {
    sender.abort(SandgateError.from(error));
    throw error;
  });
  const activity = endingBy((error) => {
    sender.fail(error);
    inBackground(context.log, "a download could not be ended", () => file.stop());
  });
  sandbox.activities.add(activity);
  file
    .send(sender)
    .then(() => sender.end({}))
    .catch((thrown: unknown) => sender.fail(logged(context, thrown, call.request_id)))
    .finally(() => sandbox.activities.delete(activity));
  return file.size === undefined ? {} : { size: file.size };
}

export async function stat(context: WorkerContext, call: StatCall): Promise<StatReply> {
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

function endingBy(end: (error: SandgateError) => void): Activity {
  return { kind: "transfer", abort: end, killFor: (reason) => end(new SandgateError("insufficient_storage", reason)) };
}

function logged(context: WorkerContext, thrown: unknown, requestId: string): SandgateError {
  const error = SandgateError.from(thrown);
  if (error.code === "internal_error") context.log.error({ err: thrown, request_id: requestId }, "a file transfer failed");
  return error;
}
