/** The formats of /metrics. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFor, histogramText, openMetricsOf } from "../../../../gateway/metrics/text.ts";
import { Histogram } from "../../../../shared/util/histogram.ts";
import { TraceContext } from "../../../../shared/util/trace-context.ts";

test("a scraper gets OpenMetrics where it likes that best, and everybody else gets Prometheus text", () => {
  const prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
  for (const accept of [prometheus, "application/openmetrics-text", "Application/OpenMetrics-Text; version=1.0.0"])
    assert.equal(formatFor(accept), "openmetrics", accept);
  const others = [
    "",
    "*/*",
    "text/plain",
    "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.2",
    "application/openmetrics-text;q=0",
  ];
  for (const accept of others) assert.equal(formatFor(accept), "prometheus", accept);
});

test("only OpenMetrics has exemplars, in their buckets", () => {
  const durations = new Histogram();
  const [read, logged] = [new TraceContext("req_1"), new TraceContext("req_2")];
  const { traceId } = logged.ids;
  durations.observe(0.002, read);
  durations.observe(0.3, logged);
  durations.observe(100);
  const series = [{ labels: { path: "/a" }, observed: durations }];
  const plain = histogramText("t_seconds", "Time.", series, "prometheus");
  assert.ok(!plain.includes(traceId) && plain.endsWith('t_seconds_sum{path="/a"} 100.302\nt_seconds_count{path="/a"} 3\n'));
  const open = histogramText("t_seconds", "Time.", series, "openmetrics");
  const marked = open.split("\n").filter((line) => line.includes(" # "));
  assert.equal(marked.length, 1);
  assert.match(marked[0] ?? "", new RegExp(`^t_seconds_bucket\\{path="/a",le="0.5"\\} 2 # \\{trace_id="${traceId}"\\} 0.3 \\d+(\\.\\d+)?$`));
  assert.equal(open.replace(/ # .*/g, ""), plain.replace(/ # .*/g, ""));
});

test("Prometheus text becomes OpenMetrics", () => {
  const text = [
    ...["# HELP a_total As.", "# TYPE a_total counter", 'a_total{b="c"} 1', "", "# HELP b Bs now.", "# TYPE b gauge", "b 2", ""],
    ...["# HELP b_total Bs.", "# TYPE b_total counter", "b_total 3", "", ""],
  ].join("\n");
  const expected = [
    ...["# HELP a As.", "# TYPE a counter", 'a_total{b="c"} 1', "# HELP b Bs now.", "# TYPE b gauge", "b 2"],
    ...["# HELP b_total Bs.", "# TYPE b_total unknown", "b_total 3", "# EOF", ""],
  ].join("\n");
  assert.equal(openMetricsOf(text), expected);
});
