/** What the handlers of a worker work with: all that `compose.ts` has built, and the worker's phase. Made once in `main.ts`. */
import type { connect, Ground, makeSandboxes, openFiles, openRecords, openRuntime, openStorages } from "./compose.ts";
import type { Phase } from "./phase.ts";

type Built<F extends (...args: never[]) => unknown> = Readonly<Awaited<ReturnType<F>>>;

export type WorkerContext = Ground &
  Built<typeof connect> &
  Built<typeof openRecords> &
  Built<typeof openRuntime> &
  Built<typeof openStorages> &
  Built<typeof openFiles> &
  Built<typeof makeSandboxes> & { readonly phase: Phase };
