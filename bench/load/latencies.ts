/** Times in an HDR histogram: a thousandth exact over the whole range, and readable by every other HdrHistogram tool. */
import { build, decodeFromCompressedBase64, encodeIntoCompressedBase64, type JsHistogram } from "hdr-histogram-js";
import type { Counted } from "../statistics.ts";

const usPerMs = 1_000;
/** An hour. What takes longer counts as an hour. */
const usMax = 3_600_000_000;

export class Latencies {
  readonly #histogram: JsHistogram;

  private constructor(histogram: JsHistogram) {
    this.#histogram = histogram;
  }

  static empty(): Latencies {
    const range = { lowestDiscernibleValue: 1, highestTrackableValue: usMax } as const;
    return new Latencies(build({ ...range, numberOfSignificantValueDigits: 3, bitBucketSize: 32, autoResize: false }) as JsHistogram);
  }

  /** @param encoded as `encoded` returns it. @throws {Error} if it is something else */
  static decode(encoded: string): Latencies {
    return new Latencies(decodeFromCompressedBase64(encoded) as JsHistogram);
  }

  /** All of several histograms together. */
  static sum(parts: Iterable<Latencies>): Latencies {
    const all = Latencies.empty();
    for (const part of parts) if (part.count > 0) all.#histogram.add(part.#histogram);
    return all;
  }

  record(ms: number): void {
    this.#histogram.recordValue(Math.min(usMax, Math.max(1, Math.round(ms * usPerMs))));
  }

  get count(): number {
    return this.#histogram.totalCount;
  }

  get meanMs(): number {
    return this.count === 0 ? 0 : this.#histogram.mean / usPerMs;
  }

  get maxMs(): number {
    return this.count === 0 ? 0 : this.#histogram.maxValue / usPerMs;
  }

  /** In milliseconds; 0 without values. @param share above 0, at most 1 */
  percentile(share: number): number {
    return this.count === 0 ? 0 : this.#histogram.getValueAtPercentile(share * 100) / usPerMs;
  }

  /** Every value in milliseconds, ascending. */
  *values(): Generator<Counted> {
    const { recordedValuesIterator: values } = this.#histogram;
    values.reset();
    while (values.hasNext()) {
      const { valueIteratedTo, countAtValueIteratedTo } = values.next();
      if (countAtValueIteratedTo > 0) yield [valueIteratedTo / usPerMs, countAtValueIteratedTo];
    }
  }

  /** As base64 of the compressed V2 format of HdrHistogram, in microseconds. */
  get encoded(): string {
    return encodeIntoCompressedBase64(this.#histogram);
  }
}
