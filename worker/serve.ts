/** The worker's table of calls: subject, schema, handler. The only way in from NATS. */
import type { TSchema } from "typebox";
import {
  CreateCall,
  DeleteCall,
  DeleteSnapshotCall,
  DownloadCall,
  DrainCall,
  ExecuteCall,
  ImagesCall,
  LogsCall,
  RemoveImageCall,
  RestoreCall,
  SnapshotCall,
  StatCall,
  StatusCall,
  UploadCall,
} from "../shared/bus/messages.ts";
import type { Bus } from "../shared/bus/nats.ts";
import { SessionAttachCall, SessionStartCall, SessionsCall } from "../shared/bus/sessions.ts";
import { lastToken, subjects, type WorkerVerb } from "../shared/bus/subjects.ts";
import { SandgateError } from "../shared/errors.ts";
import { checker } from "../shared/schemas/validate.ts";
import type { WorkerContext } from "./context.ts";
import { execute } from "./handlers/exec.ts";
import { download, stat, upload } from "./handlers/files.ts";
import { listImages, removeImage, setCordoned } from "./handlers/operations.ts";
import { create, remove } from "./handlers/sandbox.ts";
import { sessionAttach, sessionStart, sessions } from "./handlers/session.ts";
import { deleteSnapshot, restore, snapshot } from "./handlers/snapshot.ts";
import { logs, status } from "./handlers/usage.ts";

type Handler = (context: WorkerContext, body: unknown) => Promise<object>;

function handler<T>(schema: TSchema, handle: (context: WorkerContext, call: T) => Promise<object>): Handler {
  const check = checker(schema);
  return (context, body) => handle(context, check(body) as T);
}

const handlers: Readonly<Record<WorkerVerb, Handler>> = {
  create: handler(CreateCall, create),
  delete: handler(DeleteCall, remove),
  execute: handler(ExecuteCall, execute),
  upload: handler(UploadCall, upload),
  download: handler(DownloadCall, download),
  stat: handler(StatCall, stat),
  status: handler(StatusCall, status),
  logs: handler(LogsCall, logs),
  drain: handler(DrainCall, setCordoned),
  images: handler(ImagesCall, listImages),
  removeImage: handler(RemoveImageCall, removeImage),
  snapshot: handler(SnapshotCall, snapshot),
  restore: handler(RestoreCall, restore),
  deleteSnapshot: handler(DeleteSnapshotCall, deleteSnapshot),
  sessionStart: handler(SessionStartCall, sessionStart),
  sessionAttach: handler(SessionAttachCall, sessionAttach),
  sessions: handler(SessionsCall, sessions),
};

/** Starts to answer calls. */
export function serve(bus: Bus, context: WorkerContext): void {
  bus.serve(subjects.worker(context.workerId, "*"), async (subject, body) => {
    const verb = lastToken(subject);
    if (!Object.hasOwn(handlers, verb)) throw new SandgateError("internal_error", `no such call: ${verb}`);
    context.counters.calls++;
    try {
      return await handlers[verb as WorkerVerb](context, body);
    } finally {
      context.counters.calls--;
    }
  });
}
