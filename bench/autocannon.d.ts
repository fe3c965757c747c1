/** The part of autocannon used here; the package has no types of its own. */
declare module "autocannon" {
  interface Options {
    url: string;
    headers: Readonly<Record<string, string>>;
    connections: number;
    /** Seconds. */
    duration: number;
  }
  interface Result {
    errors: number;
    non2xx: number;
    /** Seconds. */
    duration: number;
    requests: { total: number };
  }
  interface Instance extends PromiseLike<Result> {
    on(event: "response", listener: (client: unknown, status: number, bytes: number, responseMs: number) => void): this;
  }
  export default function autocannon(options: Options): Instance;
}
