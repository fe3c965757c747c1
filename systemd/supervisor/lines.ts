/** Splits the output of a part into lines of limited length: a compromised part may write forever without a line break. */
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

const logLineCharsMax = 1024 * 1024;

/** Calls back with each line, without its end. @param lineCharsMax the rest of a longer line is dropped */
export function readLines(stream: Readable, take: (line: string) => void, lineCharsMax = logLineCharsMax): void {
  const decoder = new StringDecoder("utf8");
  let line = "";
  const add = (text: string): void => {
    line += text.slice(0, lineCharsMax - line.length);
  };
  stream.on("data", (bytes: Buffer) => {
    const [rest = "", ...more] = decoder.write(bytes).split("\n");
    add(rest);
    for (const next of more) {
      take(line.replace(/\r$/, ""));
      line = "";
      add(next);
    }
  });
  stream.on("end", () => line !== "" && take(line));
  stream.on("error", () => undefined);
}
