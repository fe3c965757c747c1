/** A progress bar for a transfer, shown on terminals only. */
import { Presets, SingleBar } from "cli-progress";
import type { OnProgress } from "../client/transfer.ts";
import { bytesText } from "./output.ts";

export interface Progress {
  readonly on: OnProgress;
  end(): void;
}

/** @param isWanted false with `--json`, for example */
export function progressBar(title: string, isWanted: boolean): Progress {
  if (!isWanted || process.stderr.isTTY !== true) return { on: () => {}, end: () => {} };
  const format = (
    { barsize = 30, barCompleteString = "", barIncompleteString = "" },
    { progress, value, total }: { progress: number; value: number; total: number },
  ): string => {
    const done = Math.round(Math.min(1, progress) * barsize);
    const bar = barCompleteString.slice(0, done) + barIncompleteString.slice(0, barsize - done);
    return total > 0 ? `${title} ${bar} ${Math.floor(progress * 100)} %  ${bytesText(value)} of ${bytesText(total)}` : `${title} ${bytesText(value)}`;
  };
  const bar = new SingleBar({ format, barsize: 30, stream: process.stderr, clearOnComplete: true, hideCursor: true, fps: 10 }, Presets.shades_classic);
  let isShown = false;
  return {
    on(done, total) {
      if (isShown) bar.setTotal(total ?? 0);
      else bar.start(total ?? 0, done);
      isShown = true;
      bar.update(done);
    },
    end() {
      if (isShown) bar.stop();
    },
  };
}
