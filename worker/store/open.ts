/** Opens the records of a worker. A file that is damaged is put aside, so that it does not end every start. */
import { closeSync, existsSync, openSync, readFileSync, readSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { programFile } from "../../shared/programs.mjs";
import type { Logger } from "../../shared/util/log.ts";
import type { LogLimits } from "../log/execution-log.ts";
import { run } from "../runtime/process/run.ts";
import { Store } from "./store.ts";

const checkTimeoutMs = 60_000;
const checkProgram = programFile("worker/store/check.ts");

/** What the mark says while the records have yet to be made anew. */
const lost = "lost";

/** The first two pages of LMDB's file, of which one is valid: where in them is what (mdb.c of the lmdb package, 64-bit). */
const meta = { bytes: 160, magicAt: 24, magic: 0xbeefc0de, pageSizeAt: 48, lastPageAt: 144, transactionAt: 152 } as const;

export interface OpenedStore {
  readonly store: Store;
  /** Whether there were records that could not be read: they have to be made anew from what others know. */
  readonly isLost: boolean;
  /** To be called when the records have been read once. */
  readonly settled: () => void;
}

/** @param dir the folder of the records; the mark of a start that is under way lies beside it. */
export async function openStore(dir: string, log: Logger, logLimits?: LogLimits): Promise<OpenedStore> {
  const mark = `${dir}.opening`;
  // A start that did not come to its end may have been ended by the file.
  const isSuspect = existsSync(mark) || !looksWhole(join(dir, "data.mdb"));
  const isBroken = isSuspect && existsSync(dir) && !(await canBeRead(dir, log));
  // Also when the start after which they were to be made anew was cut short.
  const isLost = isBroken || (existsSync(mark) && readFileSync(mark, "utf8") === lost);
  writeFileSync(mark, isLost ? lost : "");
  if (isBroken) putAside(dir, log);
  return { store: new Store(dir, logLimits), isLost, settled: () => rmSync(mark, { force: true }) };
}

async function canBeRead(dir: string, log: Logger): Promise<boolean> {
  const result = await run(process.execPath, [checkProgram, dir], { timeoutMs: checkTimeoutMs });
  if (result.exitCode !== 0) log.error({ event: "store_check", exit_code: result.exitCode, stderr: result.stderr.slice(-2_000) }, "the records cannot be read");
  return result.exitCode === 0;
}

function putAside(dir: string, log: Logger): void {
  const aside = `${dir}.broken-${new Date().toISOString().replaceAll(":", "-")}`;
  renameSync(dir, aside);
  log.error(
    { event: "store_broken", aside },
    "the records of this worker are damaged and were put aside; sandboxes and snapshots are found again, the execution log and the usage history are lost",
  );
}

/** Whether nothing of the file is missing at its end; a file that is not there is whole. */
function looksWhole(file: string): boolean {
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) return true;
  const first = metaAt(file, 0);
  if (!first) return false;
  const second = metaAt(file, first.pageSize);
  const newest = second && second.transaction > first.transaction ? second : first;
  return second !== undefined && (newest.lastPage + 1n) * BigInt(first.pageSize) <= BigInt(size);
}

function metaAt(file: string, position: number): { pageSize: number; lastPage: bigint; transaction: bigint } | undefined {
  const page = Buffer.alloc(meta.bytes);
  const fd = openSync(file, "r");
  try {
    if (readSync(fd, page, 0, meta.bytes, position) < meta.bytes || page.readUInt32LE(meta.magicAt) !== meta.magic) return undefined;
  } finally {
    closeSync(fd);
  }
  return {
    pageSize: page.readUInt32LE(meta.pageSizeAt),
    lastPage: page.readBigUInt64LE(meta.lastPageAt),
    transaction: page.readBigUInt64LE(meta.transactionAt),
  };
}
