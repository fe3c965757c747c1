/** Opens the records of a worker. A damaged file is moved aside, so that it does not make every start fail. */
import { closeSync, existsSync, openSync, readFileSync, readSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { programFile } from "../../shared/programs.mjs";
import type { Logger } from "../../shared/util/log.ts";
import type { LogLimits } from "../log/execution-log.ts";
import { LogJournal } from "../log/journal.ts";
import { run } from "../runtime/process/run.ts";
import { dataFile, Store } from "./store.ts";

const checkTimeoutMs = 60_000;
const checkProgram = programFile("worker/store/check.ts");

/** Content of the mark while the records still have to be rebuilt. */
const lost = "lost";

/** Offsets within LMDB's first two pages, the meta pages, of which one is valid (mdb.c of the lmdb package, 64-bit). */
const meta = { bytes: 160, magicAt: 24, magic: 0xbeefc0de, pageSizeAt: 48, lastPageAt: 144, transactionAt: 152 } as const;

export interface OpenedStore {
  readonly store: Store;
  /** Whether there were records that could not be read and must be rebuilt from the directory. */
  readonly isLost: boolean;
  /** To be called when the records have been read once. */
  readonly settled: () => void;
}

/**
 * @param dir the folder of the records. The mark of a start in progress lies beside it.
 * @param journalDir a folder in memory of this worker, for log entries that are not in there yet
 */
export async function openStore(dir: string, log: Logger, logLimits: LogLimits, journalDir: string): Promise<OpenedStore> {
  const mark = `${dir}.opening`;
  // A start that did not complete may have been killed by a damaged file.
  const isSuspect = existsSync(mark) || !looksWhole(join(dir, dataFile));
  const isBroken = isSuspect && existsSync(dir) && !(await canBeRead(dir, log));
  // Also when an earlier start was cut short before it had rebuilt the records.
  const isLost = isBroken || (existsSync(mark) && readFileSync(mark, "utf8") === lost);
  writeFileSync(mark, isLost ? lost : "");
  if (isBroken) putAside(dir, log);
  const onFailure = (err: unknown): void => log.error({ err }, "the log of commands could not be written");
  const store = new Store(dir, { ...logLimits, journal: new LogJournal(journalDir), onFailure });
  await store.log.recover();
  return { store, isLost, settled: () => rmSync(mark, { force: true }) };
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
    "the records of this worker are damaged and were moved aside; sandboxes and snapshots are recovered from the directory, the execution log and the usage history are lost",
  );
}

/** Whether the file is not truncated. A missing file counts as whole. */
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
