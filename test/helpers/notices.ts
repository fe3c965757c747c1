/** A service manager as services see it: a datagram socket at which it is told how they are. */
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { execa } from "execa";

const listener = String.raw`use Socket; $| = 1; $ARGV[0] =~ s/^\@/\0/; socket(my $s, PF_UNIX, SOCK_DGRAM, 0); bind($s, pack("Sa*", 1, $ARGV[0])) or die;
  print "listening\n"; while (defined recv($s, my $text, 1000, 0)) { print "$text\n" }`;

/** Says what comes in at an address, one datagram after the other. */
export async function listenAt(address: string) {
  const program = execa("perl", ["-e", listener, address], { reject: false, buffer: false });
  const lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
  assert.equal((await lines.next()).value, "listening");
  return {
    next: async (): Promise<unknown> => (await lines.next()).value,
    async [Symbol.asyncDispose]() {
      program.kill("SIGKILL");
      await program;
    },
  };
}
