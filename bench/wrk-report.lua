-- Prints what http-load.ts needs as the last line; times in milliseconds.
function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    '{"requests":%d,"durationMs":%f,"errors":%d,"p50":%f,"p95":%f,"p99":%f}',
    summary.requests,
    summary.duration / 1000,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50) / 1000,
    latency:percentile(95) / 1000,
    latency:percentile(99) / 1000
  ))
end
